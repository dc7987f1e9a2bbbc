"""The first synchronization of existing users, before a stream delivers. Also the comparison, which only reports differences."""
