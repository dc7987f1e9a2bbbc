"""The durations of the longer fault tests on an idle machine, in seconds. A duration includes the time of the fixtures.

A run with a time limit starts only tests that can end before the limit.
"""

from __future__ import annotations

# The expected duration, in seconds, of a test that `SECONDS` does not contain.
_USUAL_SECONDS = 10.0
SECONDS = {
    "test_a_flipped_byte_on_an_encrypted_link_to_the_database_causes_no_wrong_event": 20.0,
    "test_a_worker_killed_while_it_sends_an_alert_repeats_no_alert": 15.0,
    "test_a_restore_to_a_point_in_time_keeps_earlier_commits_and_refuses_later_cursors": 40.0,
    "test_a_rolling_restart_under_load_neither_loses_nor_duplicates_an_event": 25.0,
    "test_a_worker_whose_clock_is_behind_takes_over_the_deliveries_of_a_killed_worker_whose_clock_is_ahead": 15.0,
    "test_an_event_is_delivered_in_time_during_a_burst_of_another_tenant": 25.0,
    "test_an_export_completes_although_its_workers_are_killed": 15.0,
    "test_an_idle_transaction_delays_only_the_user_and_the_log_that_it_locks": 35.0,
    "test_an_upgrade_under_load_loses_no_event_and_disconnects_no_reader": 90.0,
    "test_changes_of_a_thousand_users_arrive_after_an_outage_of_the_server": 40.0,
    "test_killed_pruning_leaves_a_log_without_a_gap_and_resumes": 15.0,
    "test_no_event_is_lost_or_repeated_when_a_writer_is_killed_at_a_step": 20.0,
    "test_random_kills_of_web_processes_and_writers_never_lose_or_repeat_an_event": 30.0,
    "test_a_process_killed_while_it_redelivers_dead_letters_loses_no_event": 15.0,
    "test_a_full_disk_of_the_write_ahead_log_loses_no_acknowledged_change": 25.0,
    "test_a_disk_that_fails_to_flush_loses_no_acknowledged_change": 25.0,
    "test_positions_cursors_and_slots_do_not_depend_on_the_clock_of_a_process": 20.0,
    "test_requests_are_refused_and_streams_stay_open_while_no_database_connection_is_free": 25.0,
    "test_streams_and_requests_continue_over_a_slow_link_to_the_database": 35.0,
    "test_streams_and_requests_continue_while_redis_refuses_every_write": 15.0,
    "test_streams_keep_their_position_while_the_database_restarts_crashes_freezes_or_is_cut_off": 20.0,
    "test_subscribers_that_disconnect_at_random_receive_exactly_the_log": 25.0,
    "test_the_deletion_of_an_organization_and_a_group_resumes_after_a_kill": 20.0,
    "test_two_hundred_streams_continue_after_many_restarts": 30.0,
    "test_without_hints_no_event_is_lost_and_polling_limits_the_delay": 20.0,
    "test_writers_get_errors_while_the_data_disk_is_full_and_continue_afterwards": 25.0,
}


# The first test that uses the fixture `world` also starts the servers of this fixture. This is the duration of the start, in seconds.
_WORLD_SECONDS = 12.0


def expected_seconds(name: str, *, starts_world: bool = False) -> float:
    """Return the expected duration of a test in seconds. `name` may contain the parameters of a case."""
    return SECONDS.get(name.partition("[")[0], _USUAL_SECONDS) + (_WORLD_SECONDS if starts_world else 0.0)
