"""What all apps stand on: pieces that know no model of ours."""
