"""Statistics of counts: what every report of a rate needs."""
