// An API with rate limits: `make example-express` runs it.
import cors from "cors";
import express from "express";
import { byApiKey, headers, rateLimit } from "./rate-limit.js";

const app = express();
// Used earlier, it is outside: preflights end there, and a browser may read a 429.
app.use(cors({ exposedHeaders: headers }));
app.use(rateLimit({ key: byApiKey((process.env.API_KEYS ?? "").split(",")) }));

app.get("/", (request, response) => {
  response.json({ hello: "world" });
});

app.post("/echo", express.raw({ type: () => true }), (request, response) => {
  response.json({ bytes: request.body.length });
});

app.get("/unavailable", (request, response) => {
  response.status(503).json({ error: "the server's own fault: it costs the client nothing" });
});

app.get("/defect", () => {
  throw new Error("an unexpected error costs the client nothing either");
});

app.listen(process.env.SOCKET ?? process.env.PORT ?? 8000, process.env.SOCKET ? undefined : "127.0.0.1");
