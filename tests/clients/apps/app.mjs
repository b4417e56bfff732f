// An app with the limits that LIMITS lists, each a JSON object of arguments.
import express from "express";
import { rateLimit } from "./rate-limit.js";

const app = express();
app.set("trust proxy", true);
// The last one is outermost in the other app.
for (const { path, cost, ...limit } of JSON.parse(process.env.LIMITS).reverse()) {
  const skip = path ? (request) => request.path !== path : undefined;
  app.use(rateLimit({ ...limit, ...(skip && { skip }), ...(cost && { cost: () => cost }) }));
}
app.get(["/", "/other"], (request, response) => response.json({ hello: "world" }));
app.post("/echo", express.raw({ type: () => true }), (request, response) => {
  response.json({ bytes: request.body.length });
});
app.get("/unavailable", (request, response) => response.status(503).json({ detail: "unavailable" }));
app.get("/moved", (request, response) => response.set("Retry-After", "7").redirect(307, "/"));
if (process.env.SOCKET) app.listen(process.env.SOCKET);
else app.listen(process.env.PORT, "127.0.0.1");
