"""What connections are told: schemas, secrets at rest, discovery."""
