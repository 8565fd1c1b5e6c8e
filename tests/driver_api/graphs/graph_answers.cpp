// SPDX-License-Identifier: Apache-2.0
// What a driver answers about graphs and stream capture. Answers: ../answers/graph_answers_h100.txt.
// graph_answers LIBCUDA GROUP asks one group only.
#include "questions.h"

#include <cstring>
#include <iostream>
#include <sstream>
#include <sys/wait.h>
#include <unistd.h>

namespace graph_questions {

std::string number(long long value) {
    return std::to_string(value);
}

std::string Names::of(const void* handle) const {
    if (!handle) return "null";
    for (auto name = names_.rbegin(); name != names_.rend(); ++name)
        if (name->first == handle) return name->second;
    return "?";
}

std::string shape_of(CUgraph graph) {
    if (!graph) return "null";
    std::size_t count = 0, edges = 0;
    if (int result = call("cuGraphGetNodes", graph, static_cast<CUgraphNode*>(nullptr), &count)) return "!" + number(result);
    std::vector<CUgraphNode> nodes(count + 1);
    if (count) must("cuGraphGetNodes", graph, nodes.data(), &count);
    std::string text = "[";
    Names names;
    for (std::size_t i = 0; i < count; ++i) {
        int type = -1;
        must("cuGraphNodeGetType", nodes[i], &type);
        text += (i ? " " : "") + number(type);
        names.name(nodes[i], number(static_cast<long long>(i)));
    }
    must("cuGraphGetEdges_v2", graph, static_cast<CUgraphNode*>(nullptr), static_cast<CUgraphNode*>(nullptr),
         static_cast<CUgraphEdgeData*>(nullptr), &edges);
    std::vector<CUgraphNode> from(edges + 1), to(edges + 1);
    std::vector<CUgraphEdgeData> data(edges + 1);
    if (edges) must("cuGraphGetEdges_v2", graph, from.data(), to.data(), data.data(), &edges);
    text += "]";
    for (std::size_t i = 0; i < edges; ++i) {
        text += " " + names.of(from[i]) + ">" + names.of(to[i]);
        if (data[i].from_port || data[i].to_port || data[i].type)
            text += "(" + number(data[i].from_port) + "," + number(data[i].to_port) + "," + number(data[i].type) + ")";
    }
    return text;
}

CUDA_KERNEL_NODE_PARAMS Ground::empty_kernel() const {
    CUDA_KERNEL_NODE_PARAMS kernel{};
    kernel.func = empty;
    kernel.gridDimX = kernel.gridDimY = kernel.gridDimZ = kernel.blockDimX = kernel.blockDimY = kernel.blockDimZ = 1;
    return kernel;
}

CUDA_KERNEL_NODE_PARAMS Ground::add_kernel(unsigned& value) const {
    CUDA_KERNEL_NODE_PARAMS kernel = empty_kernel();
    kernel.func = add;
    parameters[0] = const_cast<CUdeviceptr*>(&memory);
    parameters[1] = &value;
    kernel.kernelParams = parameters;
    return kernel;
}

CUDA_MEMCPY3D Ground::copy(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) const {
    CUDA_MEMCPY3D copy{};
    copy.srcMemoryType = copy.dstMemoryType = memory_device;
    copy.srcDevice = from, copy.dstDevice = to;
    copy.WidthInBytes = bytes, copy.Height = copy.Depth = 1;
    return copy;
}

CUDA_MEMSET_NODE_PARAMS Ground::fill(CUdeviceptr to, unsigned value, std::size_t width) const {
    return {to, 0, value, 4, width, 1};
}

CUgraph Ground::graph() const {
    CUgraph graph{};
    must("cuGraphCreate", &graph, 0u);
    return graph;
}

CUgraphNode Ground::empty_node(CUgraph graph, const std::vector<CUgraphNode>& dependencies) const {
    CUgraphNode node{};
    must("cuGraphAddEmptyNode", &node, graph, dependencies.data(), dependencies.size());
    return node;
}

CUgraphNode Ground::kernel_node(CUgraph graph, const std::vector<CUgraphNode>& dependencies) const {
    CUgraphNode node{};
    const CUDA_KERNEL_NODE_PARAMS kernel = empty_kernel();
    must("cuGraphAddKernelNode_v2", &node, graph, dependencies.data(), dependencies.size(), &kernel);
    return node;
}

namespace {

constexpr char kernels[] = R"(.version 7.0
.target sm_70
.address_size 64
.visible .entry empty() { ret; }
.visible .entry add(.param .u64 p, .param .u32 v) {
  .reg .u64 %p; .reg .u32 %v;
  ld.param.u64 %p, [p]; ld.param.u32 %v, [v];
  red.global.add.u32 [%p], %v;
  ret;
}
.visible .entry add2(.param .u64 p, .param .u32 v, .param .u32 w) {
  .reg .u64 %p; .reg .u32 %v, %w;
  ld.param.u64 %p, [p]; ld.param.u32 %v, [v]; ld.param.u32 %w, [w];
  red.global.add.u32 [%p], %v; red.global.add.u32 [%p+4], %w;
  ret;
}
.visible .entry store(.param .u64 p, .param .u32 v) {
  .reg .u64 %p; .reg .u32 %v;
  ld.param.u64 %p, [p]; ld.param.u32 %v, [v];
  st.global.u32 [%p], %v;
  ret;
}
)";

void prepare(Ground& ground) {
    must("cuInit", 0u);
    must("cuDevicePrimaryCtxRetain", &ground.context, 0);
    must("cuCtxSetCurrent", ground.context);
    must("cuModuleLoadData", &ground.module, static_cast<const void*>(kernels));
    must("cuModuleGetFunction", &ground.empty, ground.module, "empty");
    must("cuModuleGetFunction", &ground.add, ground.module, "add");
    must("cuModuleGetFunction", &ground.add2, ground.module, "add2");
    must("cuModuleGetFunction", &ground.store, ground.module, "store");
    must("cuMemAlloc_v2", &ground.memory, std::size_t{1} << 20);
    must("cuMemAlloc_v2", &ground.other_memory, std::size_t{1} << 20);
    must("cuMemHostAlloc", &ground.pinned, std::size_t{1} << 20, 0u);
    must("cuMemsetD8_v2", ground.memory, static_cast<unsigned char>(0), std::size_t{1} << 20);
    must("cuMemsetD8_v2", ground.other_memory, static_cast<unsigned char>(0), std::size_t{1} << 20);
    std::memset(ground.pinned, 0, std::size_t{1} << 20);
    must("cuStreamCreate", &ground.stream, 1u);
    must("cuStreamCreate", &ground.second, 1u);
    must("cuStreamCreate", &ground.blocking, 0u);
    must("cuEventCreate", &ground.event, 0u);
    must("cuEventCreate", &ground.second_event, 0u);
}

int output = 1;

void print(const std::string& question, const std::string& answer) {
    const std::string line = question + "\t" + answer + "\n";
    if (write(output, line.data(), line.size()) < 0) std::_Exit(3);
}

/// The lines of one group, asked in a child process.
std::string lines_of(const Group& group) {
    int ends[2];
    if (pipe(ends) != 0) std::_Exit(3);
    const pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        output = ends[1];
        alarm(600); // an emulated CPU takes minutes
        Ground ground;
        ground.print = print;
        prepare(ground);
        group.ask(ground);
        std::_Exit(0);
    }
    close(ends[1]);
    std::string lines;
    char buffer[4096];
    for (ssize_t bytes; (bytes = read(ends[0], buffer, sizeof buffer)) > 0;) lines.append(buffer, static_cast<std::size_t>(bytes));
    close(ends[0]);
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFSIGNALED(status)) lines += std::string("the process\tended by signal ") + number(WTERMSIG(status)) + "\n";
    else if (WEXITSTATUS(status)) lines += std::string("the process\tended with ") + number(WEXITSTATUS(status)) + "\n";
    return lines;
}

} // namespace
} // namespace graph_questions

int main(int count, char** words) {
    using namespace graph_questions;
    std::string only;
    if (count == 4 || (count == 3 && access(words[2], R_OK) != 0)) only = words[--count];
    answers::Answers answers(count, words);
    for (const auto* groups :
         {&structure_groups, &parameter_groups, &execution_groups, &memory_groups, &capture_groups})
        for (const Group& group : *groups) {
            if (!only.empty() && only != group.name) continue;
            std::istringstream lines(lines_of(group));
            for (std::string line; std::getline(lines, line);) {
                const std::size_t tab = line.find('\t');
                if (tab != std::string::npos) answers.give(std::string(group.name) + ": " + line.substr(0, tab), line.substr(tab + 1));
            }
        }
    return answers.finish();
}
