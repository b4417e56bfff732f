"""An app with the limits that LIMITS lists, each a JSON object of arguments."""

import json
import os

from fastapi import FastAPI, HTTPException, Request
from fastapi.responses import RedirectResponse
from rate_limit import RateLimit

app = FastAPI()
for limit in json.loads(os.environ["LIMITS"]):
    arguments = {"name": limit["name"], "rules": limit["rules"], "fail_open": limit.get("failOpen", True)}
    if "path" in limit:
        arguments["skip"] = lambda request, path=limit["path"]: request.url.path != path
    if "cost" in limit:
        arguments["cost"] = lambda request, cost=limit["cost"]: cost
    app.add_middleware(RateLimit, **arguments)


@app.get("/")
@app.get("/other")
async def hello():
    return {"hello": "world"}


@app.post("/echo")
async def echo(request: Request):
    return {"bytes": len(await request.body())}


@app.get("/unavailable")
async def unavailable():
    raise HTTPException(503, "unavailable")


@app.get("/moved")
async def moved():
    return RedirectResponse("/", headers={"Retry-After": "7"})
