"""What clients read of actions and deliveries."""
