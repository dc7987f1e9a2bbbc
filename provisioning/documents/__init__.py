"""JSON documents of actions and deliveries in the management interface."""
