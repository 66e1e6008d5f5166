"""Jobs that are submitted and cannot start yet: dependencies, begin times, throttles, holds."""
