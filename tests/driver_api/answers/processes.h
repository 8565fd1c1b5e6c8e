// SPDX-License-Identifier: Apache-2.0
// Questions that need a process of their own: a driver that crashes at one of them, or whose context a fault ends,
// takes the others of that process along and no more. And a second process beside it, for what is shared between two.
#pragma once

#include "answers.h"

#include "runtime/shim/cuda_types.h"

#include <cstring>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace answers {

inline std::string number(long long value) {
    return std::to_string(value);
}

/// Gives answers from a child process: lines through a pipe.
class Told {
public:
    explicit Told(int pipe) : pipe_(pipe) {}
    void give(const std::string& question, const std::string& answer) const {
        const std::string line = question + "\t" + answer + "\n";
        if (write(pipe_, line.data(), line.size()) < 0) std::_Exit(3);
    }
    void give(const std::string& question, long long answer) const { give(question, std::to_string(answer)); }

private:
    int pipe_;
};

/// ask(Told&) in a process of its own. The caller must not have used the driver. A process that dies says so.
template <class Ask> void in_process(Answers& answers, const std::string& name, Ask&& ask) {
    int ends[2];
    if (pipe(ends) != 0) std::_Exit(2);
    const pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        alarm(60);
        ask(Told(ends[1]));
        std::_Exit(0);
    }
    close(ends[1]);
    std::string text;
    char buffer[4096];
    for (ssize_t got; (got = read(ends[0], buffer, sizeof buffer)) > 0;) text.append(buffer, static_cast<std::size_t>(got));
    close(ends[0]);
    for (std::size_t at = 0, end; (end = text.find('\n', at)) != std::string::npos; at = end + 1) {
        const std::string line = text.substr(at, end - at);
        const std::size_t tab = line.find('\t');
        answers.give(line.substr(0, tab), line.substr(tab + 1));
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (status != 0) answers.give(name, "died of " + number(WIFSIGNALED(status) ? WTERMSIG(status) : 1000 + WEXITSTATUS(status)));
}

/// The primary context, current; the process's first use of the driver.
inline CUcontext start() {
    CUcontext context{};
    must("cuInit", 0u);
    must("cuDevicePrimaryCtxRetain", &context, 0);
    must("cuCtxSetCurrent", context);
    return context;
}

/// One end of a pair of processes: values and file descriptors go to and fro.
class Peer {
public:
    explicit Peer(int socket) : socket_(socket) {}
    template <class T> void send(const T& value, int descriptor = -1) const {
        iovec part{const_cast<T*>(&value), sizeof value};
        alignas(cmsghdr) char space[CMSG_SPACE(sizeof(int))] = {};
        msghdr message{};
        message.msg_iov = &part, message.msg_iovlen = 1;
        if (descriptor >= 0) {
            message.msg_control = space, message.msg_controllen = sizeof space;
            cmsghdr* header = CMSG_FIRSTHDR(&message);
            header->cmsg_level = SOL_SOCKET, header->cmsg_type = SCM_RIGHTS, header->cmsg_len = CMSG_LEN(sizeof(int));
            std::memcpy(CMSG_DATA(header), &descriptor, sizeof(int));
        }
        if (sendmsg(socket_, &message, MSG_NOSIGNAL) < 0) std::_Exit(4);
    }
    template <class T> T receive(int* descriptor = nullptr) const {
        T value{};
        iovec part{&value, sizeof value};
        alignas(cmsghdr) char space[CMSG_SPACE(sizeof(int))] = {};
        msghdr message{};
        message.msg_iov = &part, message.msg_iovlen = 1;
        message.msg_control = space, message.msg_controllen = sizeof space;
        if (recvmsg(socket_, &message, MSG_WAITALL) != static_cast<ssize_t>(sizeof value)) std::_Exit(5);
        if (cmsghdr* header = CMSG_FIRSTHDR(&message); header && descriptor)
            std::memcpy(descriptor, CMSG_DATA(header), sizeof(int));
        return value;
    }
    /// Waits for the other to come to the same place.
    void meet() const {
        send('m');
        static_cast<void>(receive<char>());
    }

private:
    int socket_;
};

/// Two processes, each with a driver of its own: one(Told&, Peer&) and other(Told&, Peer&).
template <class One, class Other> void in_two_processes(Answers& answers, const std::string& name, One&& one, Other&& other) {
    in_process(answers, name, [&](const Told& told) {
        int ends[2];
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) std::_Exit(2);
        const pid_t child = fork();
        if (child == 0) {
            close(ends[0]);
            alarm(60);
            other(told, Peer(ends[1]));
            std::_Exit(0);
        }
        close(ends[1]);
        one(told, Peer(ends[0]));
        int status = 0;
        waitpid(child, &status, 0);
        if (status != 0) told.give(name + ", the other process", "died of " + number(WIFSIGNALED(status) ? WTERMSIG(status) : 1000 + WEXITSTATUS(status)));
    });
}

} // namespace answers
