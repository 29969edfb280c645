"""Only ever installed by a build."""
