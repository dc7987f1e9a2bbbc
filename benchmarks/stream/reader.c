/* A reader of many event streams in one process, cheaper than any server it measures: one epoll loop, one buffer.
 *
 * Run as `reader HOST PORT`. Commands come on standard input, one per line, and each is answered by one line of JSON:
 *   open FILE WINDOW MS   open one connection per request in FILE (4 bytes of length, then the request), WINDOW at a time
 *   mark PREFIX           from now on note when each frame with PREFIX and a number arrived; `mark` without PREFIX ends this
 *   reset                 start to count from zero
 *   wait COUNT MS         answer when COUNT frames have come on all connections together, or when the time is over
 *   arrivals              the frames that were noted, as [number, connection, nanoseconds]
 *   close                 close every connection
 * A frame is an event with data; comments, heartbeats and openings are not counted. Times are CLOCK_MONOTONIC.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "event.h"

enum { CLOSED, CONNECTING, READING_HEAD, OPEN };
enum { BUFFER = 1 << 20, BATCH = 512, PER_ADDRESS = 20000, HEAD = 8192 };

typedef struct {
    int fd, state, chunked, in_size, held, kept_size;
    int64_t chunk_left;
    uint64_t frames;
    char *kept;
} Stream;

typedef struct { int64_t number, at; int stream; } Arrival;

static Stream *streams;
static int count, opened, pending, refused, ended, window, poller;
static struct sockaddr_in server;
static char *requests, *next_request, *requests_end;
static char input[BUFFER], body[BUFFER + HEAD], prefix[64];
static Arrival *arrivals;
static size_t noted, arrivals_room;
static uint64_t frames, bytes, reads, wanted;
static int64_t first_at, last_at, deadline, started_at;
static int waits_for; /* 'o' for open, 'w' for wait, 0 for nothing */

static int64_t nanoseconds(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static int64_t now(void) { return nanoseconds(CLOCK_MONOTONIC); }

static void fail(const char *what) { perror(what); exit(1); }

static void drop(Stream *stream) {
    if (stream->state == CLOSED) return;
    if (stream->state != OPEN) { pending--; refused++; } else { opened--; ended++; }
    close(stream->fd);
    /* Before its request is sent, a stream's `kept` points into the file of requests, so it must not be freed. */
    if (stream->state != CONNECTING) free(stream->kept);
    stream->kept = NULL;
    stream->kept_size = stream->held = 0;
    stream->state = CLOSED;
}

static void open_next(void) {
    while (pending < window && next_request < requests_end) {
        Stream *stream = &streams[count++];
        memset(stream, 0, sizeof *stream);
        stream->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (stream->fd < 0) fail("socket");
        int on = 1;
        setsockopt(stream->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        setsockopt(stream->fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
        /* Another source address per 20,000 connections: ports are used up per pair of addresses. */
        struct sockaddr_in source = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000001 + (count - 1) / PER_ADDRESS)};
        if (bind(stream->fd, (struct sockaddr *)&source, sizeof source) < 0) fail("bind");
        if (connect(stream->fd, (struct sockaddr *)&server, sizeof server) < 0 && errno != EINPROGRESS) fail("connect");
        stream->state = CONNECTING;
        /* Points to the request in the file until the request is sent. */
        stream->kept = next_request;
        uint32_t size;
        memcpy(&size, next_request, sizeof size);
        next_request += sizeof size + size;
        pending++;
        struct epoll_event event = {.events = EPOLLOUT, .data.u32 = count - 1};
        if (epoll_ctl(poller, EPOLL_CTL_ADD, stream->fd, &event) < 0) fail("epoll_ctl");
    }
}

static void send_request(Stream *stream) {
    uint32_t size;
    char *request = stream->kept;
    stream->kept = NULL;
    memcpy(&size, request, sizeof size);
    /* The request is smaller than any send buffer, so it is sent completely or not at all. */
    if (send(stream->fd, request + sizeof size, size, MSG_NOSIGNAL) != (ssize_t)size) { drop(stream); return; }
    stream->state = READING_HEAD;
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = stream - streams};
    epoll_ctl(poller, EPOLL_CTL_MOD, stream->fd, &event);
}

static void note(Stream *stream, const char *frame, size_t size, int64_t at) {
    const char *found = memmem(frame, size, prefix, strlen(prefix));
    if (!found) return;
    if (noted == arrivals_room) {
        arrivals_room = arrivals_room ? arrivals_room * 2 : 4096;
        if (!(arrivals = realloc(arrivals, arrivals_room * sizeof *arrivals))) fail("realloc");
    }
    arrivals[noted++] = (Arrival){strtoll(found + strlen(prefix), NULL, 10), at, stream - streams};
}

static void keep(Stream *stream, const char *rest, int size) {
    if (size > stream->kept_size) {
        free(stream->kept);
        stream->kept_size = size + 1024;
        if (!(stream->kept = malloc(stream->kept_size))) fail("malloc");
    }
    memmove(stream->kept, rest, size);
    stream->held = size;
}

static void count_frames(Stream *stream, char *start, int size, int64_t at) {
    char *end = start + size, *blank;
    while ((blank = memmem(start, end - start, "\n\n", 2))) {
        if (is_event(start, blank - start)) {
            stream->frames++;
            if (!frames++) first_at = at;
            last_at = at;
            if (*prefix) note(stream, start, blank - start, at);
        }
        start = blank + 2;
    }
    if (end > start) keep(stream, start, end - start);
    else stream->held = 0;
}

/* Remove the chunk sizes in place; return the number of body bytes. The received data may end inside a size line. */
static int without_chunks(Stream *stream, char *data, int size) {
    char *from = data, *to = data, *end = data + size;
    while (from < end) {
        if (stream->chunk_left > 0) {
            int part = end - from < stream->chunk_left ? end - from : stream->chunk_left;
            memmove(to, from, part);
            to += part, from += part, stream->chunk_left -= part;
            if (!stream->chunk_left) stream->in_size = 0;
            continue;
        }
        char letter = *from++;
        int digit = letter >= '0' && letter <= '9' ? letter - '0' : (letter | 32) >= 'a' && (letter | 32) <= 'f' ? (letter | 32) - 'a' + 10 : -1;
        if (digit >= 0) stream->in_size = stream->in_size * 16 + digit;
        else if (letter == '\n' && stream->in_size) stream->chunk_left = stream->in_size;
    }
    return to - data;
}

static void take(Stream *stream, int64_t at) {
    int room = BUFFER - stream->held;
    ssize_t size = recv(stream->fd, input, room, 0);
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (size <= 0) { drop(stream); return; }
    char *start = input;
    if (stream->state == READING_HEAD) {
        memcpy(body, stream->kept, stream->held);
        memcpy(body + stream->held, input, size);
        size += stream->held;
        stream->held = 0;
        char *end = memmem(body, size, "\r\n\r\n", 4);
        if (!end) { keep(stream, body, size); return; }
        if (memcmp(body + 8, " 200", 4)) { fprintf(stderr, "refused: %.*s\n", (int)(size < 400 ? size : 400), body); drop(stream); return; }
        *end = 0;
        stream->chunked = strcasestr(body, "transfer-encoding: chunked") != NULL;
        stream->state = OPEN;
        pending--, opened++;
        last_at = at;
        start = end + 4;
        size -= start - body;
        memmove(input, start, size);
        start = input;
    }
    bytes += size, reads++;
    int left = stream->chunked ? without_chunks(stream, start, size) : size;
    if (stream->held) {
        memcpy(body, stream->kept, stream->held);
        memcpy(body + stream->held, start, left);
        left += stream->held;
        start = body;
    }
    count_frames(stream, start, left, at);
}

static void report(const char *command) {
    uint64_t least = count ? UINT64_MAX : 0, most = 0;
    for (int i = 0; i < count; i++) {
        if (streams[i].frames < least) least = streams[i].frames;
        if (streams[i].frames > most) most = streams[i].frames;
    }
    printf("{\"command\":\"%s\",\"streams\":%d,\"refused\":%d,\"ended\":%d,\"frames\":%lu,\"least\":%lu,\"most\":%lu,\"bytes\":%lu,"
           "\"reads\":%lu,\"started_ns\":%ld,\"first_ns\":%ld,\"last_ns\":%ld,\"cpu_ns\":%ld}\n",
           command, opened, refused, ended, frames, least, most, bytes, reads, started_at, first_at, last_at, nanoseconds(CLOCK_PROCESS_CPUTIME_ID));
}

static void load_requests(const char *path) {
    struct stat about;
    int file = open(path, O_RDONLY | O_CLOEXEC), more = 0;
    if (file < 0 || fstat(file, &about) < 0) fail(path);
    free(requests);
    requests = next_request = malloc(about.st_size);
    requests_end = requests + about.st_size;
    if (!requests || read(file, requests, about.st_size) != about.st_size) fail(path);
    close(file);
    for (char *at = requests; at < requests_end; more++) {
        uint32_t length;
        memcpy(&length, at, sizeof length);
        at += sizeof length + length;
    }
    if (!(streams = realloc(streams, (count + more) * sizeof *streams))) fail("realloc");
}

static void show_arrivals(void) {
    printf("{\"command\":\"arrivals\",\"arrivals\":[");
    for (size_t i = 0; i < noted; i++)
        printf("%s[%ld,%d,%ld]", i ? "," : "", arrivals[i].number, arrivals[i].stream, arrivals[i].at);
    printf("]}\n");
    noted = 0;
}

static void obey(char *line) {
    char word[16] = "", text[1024] = "";
    long first = 0, second = 0;
    sscanf(line, "%15s %1023s %ld %ld", word, text, &first, &second);
    if (!strcmp(word, "open")) {
        load_requests(text);
        refused = 0, window = first, deadline = now() + second * 1000000LL, waits_for = 'o', started_at = now();
        open_next();
    } else if (!strcmp(word, "wait")) {
        wanted = strtoull(text, NULL, 10), deadline = now() + first * 1000000LL, waits_for = 'w';
    } else if (!strcmp(word, "arrivals")) {
        show_arrivals();
    } else {
        if (!strcmp(word, "mark")) snprintf(prefix, sizeof prefix, "%.63s", text);
        if (!strcmp(word, "close"))
            for (int i = 0; i < count; i++) drop(&streams[i]);
        if (!strcmp(word, "close")) count = opened = ended = refused = 0;
        if (!strcmp(word, "reset")) {
            frames = bytes = reads = 0, first_at = last_at = 0, started_at = now();
            for (int i = 0; i < count; i++) streams[i].frames = 0;
        }
        report(word);
    }
}

static void answer_when_due(void) {
    int is_done = waits_for == 'o' ? !pending && next_request >= requests_end : waits_for == 'w' && frames >= wanted;
    if (!waits_for || (!is_done && now() < deadline)) return;
    report(waits_for == 'o' ? "open" : "wait");
    waits_for = 0;
}

static void read_commands(void) {
    static char line[4096];
    static size_t length;
    ssize_t size = read(0, line + length, sizeof line - 1 - length);
    if (size <= 0) exit(0);
    length += size;
    line[length] = 0;
    for (char *end; (end = strchr(line, '\n'));) {
        *end = 0;
        obey(line);
        length -= end + 1 - line;
        memmove(line, end + 1, length + 1);
    }
}

int main(int argc, char **argv) {
    if (argc != 3) { fprintf(stderr, "usage: reader HOST PORT\n"); return 2; }
    server = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(atoi(argv[2]))};
    if (inet_pton(AF_INET, argv[1], &server.sin_addr) != 1) return 2;
    setlinebuf(stdout);
    poller = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event command = {.events = EPOLLIN, .data.u32 = UINT32_MAX}, events[BATCH];
    if (poller < 0 || epoll_ctl(poller, EPOLL_CTL_ADD, 0, &command) < 0) fail("epoll");
    for (;;) {
        int ready = epoll_wait(poller, events, BATCH, waits_for ? 20 : -1);
        for (int i = 0; i < ready; i++) {
            if (events[i].data.u32 == UINT32_MAX) { read_commands(); continue; }
            Stream *stream = &streams[events[i].data.u32];
            if (stream->state == CONNECTING) send_request(stream);
            else if (stream->state != CLOSED) take(stream, now());
        }
        if (waits_for == 'o') open_next();
        answer_when_due();
    }
}
