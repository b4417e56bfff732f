"""The throttles, driven by the real framework. SLIDEWIN_URL names a Redis with the module, BARE_URL one without."""

import os

import django
import pytest
import redis
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

URL, BARE = os.environ["SLIDEWIN_URL"], os.environ["BARE_URL"]
settings.configure(
    ALLOWED_HOSTS=["*"],
    ROOT_URLCONF=__name__,
    SLIDEWIN_URL=URL,
    INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes", "rest_framework"],
    REST_FRAMEWORK={
        "DEFAULT_AUTHENTICATION_CLASSES": [],
        "UNAUTHENTICATED_USER": None,
        "DEFAULT_THROTTLE_RATES": {"anon": "3/minute", "user": "2/hour"},
    },
)
django.setup()

import slidewin_throttling  # noqa: E402
from django.urls import path  # noqa: E402
from rest_framework.decorators import api_view, throttle_classes  # noqa: E402
from rest_framework.response import Response  # noqa: E402
from rest_framework.test import APIClient, APIRequestFactory, force_authenticate  # noqa: E402


@api_view()
@throttle_classes([slidewin_throttling.AnonRateThrottle])
def anonymous(request):
    return Response("hello")


@api_view()
@throttle_classes([slidewin_throttling.UserRateThrottle])
def of_users(request):
    return Response("hello")


urlpatterns = [path("anonymous", anonymous), path("users", of_users)]


@pytest.fixture(autouse=True)
def server(monkeypatch):
    monkeypatch.setattr(slidewin_throttling, "_server", None)
    server = redis.Redis.from_url(URL)
    server.flushall()
    return server


def test_anonymous_requests_are_limited_by_address(server):
    client = APIClient()
    responses = [client.get("/anonymous") for _ in range(5)]
    assert [response.status_code for response in responses] == [200, 200, 200, 429, 429]
    assert 55 <= int(responses[-1]["Retry-After"]) <= 60
    assert client.get("/anonymous", REMOTE_ADDR="192.0.2.1").status_code == 200
    assert sorted(server.keys()) == [b"throttle_anon_127.0.0.1", b"throttle_anon_192.0.2.1"]
    assert server.strlen("throttle_anon_127.0.0.1") == 16 + 3 * 16


class User:
    is_authenticated = True

    def __init__(self, pk):
        self.pk = pk


def test_users_have_a_limit_of_their_own():
    def get(user):
        request = APIRequestFactory().get("/users")
        force_authenticate(request, user)
        return of_users(request).status_code

    assert [get(User(1)) for _ in range(3)] == [200, 200, 429]
    assert get(User(2)) == 200


def test_requests_pass_without_an_answer(settings_url="redis://127.0.0.1:1"):
    settings.SLIDEWIN_URL = settings_url
    try:
        assert [APIClient().get("/anonymous").status_code for _ in range(5)] == [200] * 5
    finally:
        settings.SLIDEWIN_URL = URL


@pytest.mark.parametrize("url, message", [
    (BARE, "this Redis has not loaded the module slidewin"),
    ("http://localhost", "SLIDEWIN_URL: "),
])
def test_what_is_wrong_is_said_in_one_sentence(url, message):
    settings.SLIDEWIN_URL = url
    try:
        with pytest.raises(ImproperlyConfigured, match=message):
            APIClient().get("/anonymous")
    finally:
        settings.SLIDEWIN_URL = URL
