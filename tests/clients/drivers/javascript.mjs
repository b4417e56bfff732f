// Calls the recipe's `allow` with each line of the input as the key, and prints what it says.
import { createInterface } from "node:readline";
import { allow } from "./recipe.mjs";

for await (const key of createInterface({ input: process.stdin })) {
  const { allowed, remaining, retryAfterMs } = await allow(key);
  console.log(JSON.stringify([allowed, remaining ?? null, retryAfterMs ?? 0]));
}
process.exit();
