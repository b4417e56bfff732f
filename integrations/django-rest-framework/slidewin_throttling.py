"""Throttles for the Django REST framework by slidewin: one command each request, exact by Redis' clock.

    REST_FRAMEWORK = {
        "DEFAULT_THROTTLE_CLASSES": ["slidewin_throttling.AnonRateThrottle", "slidewin_throttling.UserRateThrottle"],
        "DEFAULT_THROTTLE_RATES": {"anon": "10/minute", "user": "1000/hour"},
    }
    SLIDEWIN_URL = "redis://localhost:6379"
"""

import logging
import math

import redis
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from redis.backoff import NoBackoff
from redis.retry import Retry
from rest_framework import throttling

log = logging.getLogger("django.request")
_server = None


def server():
    """The client of this process, made at its first request. No retries: an unanswered call may have counted."""
    global _server
    if _server is None:
        url = getattr(settings, "SLIDEWIN_URL", "redis://localhost:6379")
        timeouts = {"socket_timeout": 0.2, "socket_connect_timeout": 0.2}
        try:
            _server = redis.Redis.from_url(url, retry=Retry(NoBackoff(), 0), **timeouts)
        except ValueError as error:
            raise ImproperlyConfigured(f"SLIDEWIN_URL: {error}") from error
    return _server


class SlidewinThrottle(throttling.SimpleRateThrottle):
    """A rate of the framework's own form, `10/minute`; denied requests leave no trace."""

    retry_after_ms = 0

    def allow_request(self, request, view):
        if self.rate is None:
            return True
        key = self.get_cache_key(request, view)
        if key is None:
            return True
        try:
            reply = server().execute_command(
                "SLIDEWIN.CHECK", key, self.num_requests, self.duration, "PACKED", "SKIPDENIED", "WITHINFO"
            )
        except (redis.ConnectionError, redis.TimeoutError) as error:
            log.warning("slidewin: no answer from Redis, the request passes: %s", error)
            return True
        except redis.ResponseError as error:
            if "unknown command" not in str(error).lower():
                raise
            raise ImproperlyConfigured("this Redis has not loaded the module slidewin") from error
        self.retry_after_ms = reply[3]
        return reply[0] == 1

    def wait(self):
        """Seconds to wait, or None when waiting does not help."""
        return math.ceil(self.retry_after_ms / 1000) if self.retry_after_ms > 0 else None


class AnonRateThrottle(SlidewinThrottle, throttling.AnonRateThrottle):
    """For anonymous requests, by address."""


class UserRateThrottle(SlidewinThrottle, throttling.UserRateThrottle):
    """For users, and by address for anonymous requests."""
