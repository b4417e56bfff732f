"""An API with rate limits: `make example-fastapi` runs it."""

import os

from fastapi import FastAPI, HTTPException, Request
from fastapi.middleware.cors import CORSMiddleware
from rate_limit import HEADERS, RateLimit, by_api_key

app = FastAPI()
app.add_middleware(RateLimit, key=by_api_key(os.environ.get("API_KEYS", "").split(",")))
# Added later, it is outside: preflights end there, and a browser may read a 429.
app.add_middleware(CORSMiddleware, allow_origins=["*"], expose_headers=HEADERS)


@app.get("/")
async def hello():
    return {"hello": "world"}


@app.post("/echo")
async def echo(request: Request):
    return {"bytes": len(await request.body())}


@app.get("/unavailable")
async def unavailable():
    raise HTTPException(503, "the server's own fault: it costs the client nothing")


@app.get("/defect")
async def defect():
    raise RuntimeError("an unexpected error costs the client nothing either")
