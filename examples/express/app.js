// An API with rate limits: `make example-express` runs it.
import express from "express";
import { limitRate } from "./rate-limit.js";

const app = express();
app.use(limitRate);

app.get("/", (request, response) => {
  response.json({ hello: "world" });
});

app.get("/unavailable", (request, response) => {
  response.status(503).json({ error: "the server's own fault: it costs the client nothing" });
});

app.get("/defect", () => {
  throw new Error("an unexpected error costs the client nothing either");
});

app.listen(process.env.PORT ?? 8000, "127.0.0.1");
