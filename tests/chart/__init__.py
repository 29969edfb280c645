"""The Helm chart: what it renders, what it grants and what its policies refuse on a real API server."""
