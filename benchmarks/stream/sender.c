/* The smallest possible server of event streams: it accepts connections, answers 200, and sends the same bytes to every client.
 *
 * Run as `sender PORT`. Commands on standard input, each answered by one line:
 *   frame FILE    the bytes of one frame
 *   send COUNT    send the frame COUNT times to every connection, one `send` per frame and connection
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { MOST = 20000, BATCH = 256 };

static int readers[MOST], count, poller, listener;
static char *frame;
static long frame_size;

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static void welcome(int fd) {
    static const char head[] = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n:connected\n\n";
    char request[8192];
    if (recv(fd, request, sizeof request, 0) <= 0) {
        for (int i = 0; i < count; i++)
            if (readers[i] == fd) readers[i] = readers[--count];
        close(fd);
        return;
    }
    if (send(fd, head, sizeof head - 1, MSG_NOSIGNAL) < 0 || count == MOST) { close(fd); return; }
    readers[count++] = fd;
}

static void admit(void) {
    int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC), on = 1;
    if (fd < 0) return;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    if (epoll_ctl(poller, EPOLL_CTL_ADD, fd, &event) < 0) fail("epoll_ctl");
}

static void send_whole(int fd, const char *at, long left) {
    while (left) {
        ssize_t sent = send(fd, at, left, MSG_NOSIGNAL);
        if (sent < 0 && errno == EAGAIN) {
            struct pollfd room = {.fd = fd, .events = POLLOUT};
            poll(&room, 1, 1000);
        } else if (sent < 0) return;
        else at += sent, left -= sent;
    }
}

static void load_frame(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file) fail(path);
    fseek(file, 0, SEEK_END);
    frame_size = ftell(file);
    rewind(file);
    frame = realloc(frame, frame_size);
    if (!frame || fread(frame, 1, frame_size, file) != (size_t)frame_size) fail(path);
    fclose(file);
}

static void obey(char *line) {
    line[strcspn(line, "\n")] = 0;
    if (!strncmp(line, "frame ", 6)) load_frame(line + 6);
    for (long times = strncmp(line, "send ", 5) ? 0 : atol(line + 5); times; times--)
        for (int i = 0; i < count; i++) send_whole(readers[i], frame, frame_size);
    printf("%d\n", count);
    fflush(stdout);
}

int main(int argc, char **argv) {
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    here.sin_port = htons(argc == 2 ? atoi(argv[1]) : 0);
    int on = 1;
    listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(listener, (struct sockaddr *)&here, sizeof here) < 0 || listen(listener, 4096) < 0) fail("listen");
    poller = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event accepting = {.events = EPOLLIN, .data.fd = listener}, commands = {.events = EPOLLIN, .data.fd = 0}, events[BATCH];
    epoll_ctl(poller, EPOLL_CTL_ADD, listener, &accepting);
    epoll_ctl(poller, EPOLL_CTL_ADD, 0, &commands);
    for (;;) {
        int ready = epoll_wait(poller, events, BATCH, -1);
        for (int i = 0; i < ready; i++) {
            char line[1024];
            if (events[i].data.fd == listener) admit();
            else if (events[i].data.fd) welcome(events[i].data.fd);
            else if (fgets(line, sizeof line, stdin)) obey(line);
            else return 0;
        }
    }
}
