// SPDX-License-Identifier: Apache-2.0
// Runs a case through a CUDA driver library (ours, or NVIDIA's on a machine with a GPU).
#include "bench/kernels/peers.h"

#include <dlfcn.h>

#include <fstream>
#include <iterator>
#include <stdexcept>

namespace bench {
namespace {

using Handle = void*;

class CudaPeer final : public Peer {
public:
    CudaPeer(const std::string& library, const std::string& ptx_file) {
        library_ = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (!library_) throw std::runtime_error(dlerror());
        std::ifstream file(ptx_file);
        if (!file) throw std::runtime_error("cannot read " + ptx_file);
        std::string text{std::istreambuf_iterator<char>(file), {}};
        int device = 0;
        Handle context = nullptr;
        call("cuInit", symbol<int(unsigned)>("cuInit")(0));
        call("cuDeviceGet", symbol<int(int*, int)>("cuDeviceGet")(&device, 0));
        call("cuDevicePrimaryCtxRetain", symbol<int(Handle*, int)>("cuDevicePrimaryCtxRetain")(&context, device));
        call("cuCtxSetCurrent", symbol<int(Handle)>("cuCtxSetCurrent")(context));
        call("cuModuleLoadData", symbol<int(Handle*, const void*)>("cuModuleLoadData")(&module_, text.c_str()));
        launch_ = symbol<Launch>("cuLaunchKernel");
        synchronize_ = symbol<int()>("cuCtxSynchronize");
    }

    const char* name() const override { return "ptarmigan"; }

    bool prepare(const KernelCase& problem) override {
        problem_ = &problem;
        for (std::uint64_t address : buffers_) symbol<int(std::uint64_t)>("cuMemFree_v2")(address);
        buffers_.clear();
        for (const Bytes& bytes : problem.buffers) {
            std::uint64_t address = 0;
            call("cuMemAlloc", symbol<int(std::uint64_t*, std::size_t)>("cuMemAlloc_v2")(&address, bytes.size()));
            call("cuMemcpyHtoD", symbol<int(std::uint64_t, const void*, std::size_t)>("cuMemcpyHtoD_v2")(
                                     address, bytes.data(), bytes.size()));
            buffers_.push_back(address);
        }
        call("cuModuleGetFunction", symbol<int(Handle*, Handle, const char*)>("cuModuleGetFunction")(
                                        &function_, module_, problem.kernel.c_str()));
        parameters_.clear();
        scalars_.clear();
        for (const Argument& argument : problem.arguments) scalars_.push_back(argument.bits);
        for (std::size_t i = 0; i < problem.arguments.size(); ++i) {
            int index = problem.arguments[i].buffer;
            parameters_.push_back(index >= 0 ? static_cast<void*>(&buffers_[index]) : &scalars_[i]);
        }
        return true;
    }

    void run() override {
        const auto &g = problem_->grid, &b = problem_->block;
        for (int i = 0; i < problem_->repeats; ++i)
            call("cuLaunchKernel",
                 launch_(function_, g[0], g[1], g[2], b[0], b[1], b[2], 0, nullptr, parameters_.data(), nullptr));
        call("cuCtxSynchronize", synchronize_());
    }

    Bytes output() override {
        Bytes bytes(problem_->buffers[problem_->output].size());
        call("cuMemcpyDtoH", symbol<int(void*, std::uint64_t, std::size_t)>("cuMemcpyDtoH_v2")(
                                 bytes.data(), buffers_[problem_->output], bytes.size()));
        return bytes;
    }

private:
    using Launch = int(Handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Handle, void**,
                       void**);
    template <typename Signature> Signature* symbol(const char* name) {
        void* address = dlsym(library_, name);
        if (!address) throw std::runtime_error(std::string("no ") + name + " in the driver library");
        return reinterpret_cast<Signature*>(address);
    }
    static void call(const char* what, int status) {
        if (status) throw std::runtime_error(std::string(what) + " failed with " + std::to_string(status));
    }

    void* library_ = nullptr;
    Handle module_ = nullptr, function_ = nullptr;
    Launch* launch_ = nullptr;
    int (*synchronize_)() = nullptr;
    const KernelCase* problem_ = nullptr;
    std::vector<std::uint64_t> buffers_;
    std::vector<std::uint32_t> scalars_;
    std::vector<void*> parameters_;
};

} // namespace

std::unique_ptr<Peer> make_cuda_peer(const std::string& library, const std::string& ptx_file) {
    return std::make_unique<CudaPeer>(library, ptx_file);
}

} // namespace bench
