// Each line is a number and a key: calls `allow` for the key that many times at once, and prints the answers.
import { createInterface } from "node:readline";
import { allow } from "./recipe.mjs";

for await (const line of createInterface({ input: process.stdin })) {
  const [, times, key] = line.match(/(\d+) (.*)/);
  const answers = await Promise.all(Array.from({ length: times }, () => allow(key)));
  const printed = answers.map(({ allowed, remaining, retryAfterMs }) => [allowed, remaining ?? null, retryAfterMs ?? 0]);
  console.log(JSON.stringify(printed));
}
process.exit();
