"""An API with rate limits: `make example-fastapi` runs it."""

from fastapi import FastAPI, HTTPException
from rate_limit import limit_rate

app = FastAPI()
app.middleware("http")(limit_rate)


@app.get("/")
async def hello():
    return {"hello": "world"}


@app.get("/unavailable")
async def unavailable():
    raise HTTPException(503, "the server's own fault: it costs the client nothing")


@app.get("/defect")
async def defect():
    raise RuntimeError("an unexpected error costs the client nothing either")
