// SPDX-License-Identifier: Apache-2.0
// Runs a case through OpenCL: PoCL on the CPU.
#include "bench/kernels/peers.h"

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace bench {
namespace {

class OpenClPeer final : public Peer {
public:
    explicit OpenClPeer(const std::string& folder) {
        cl_platform_id platforms[8];
        cl_uint count = 0;
        check(clGetPlatformIDs(8, platforms, &count), "clGetPlatformIDs");
        for (cl_uint i = 0; i < count && !device_; ++i)
            if (clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_CPU, 1, &device_, nullptr) != CL_SUCCESS) device_ = nullptr;
        if (!device_) throw std::runtime_error("no OpenCL CPU device");
        cl_int status;
        context_ = clCreateContext(nullptr, 1, &device_, nullptr, nullptr, &status);
        check(status, "clCreateContext");
        queue_ = clCreateCommandQueue(context_, device_, 0, &status);
        check(status, "clCreateCommandQueue");
        std::string text = read(folder + "/kernels.cl");
        // Includes are pasted: kernels are built from a string, without a folder of their own.
        const std::string include = "#include \"";
        for (std::size_t at = text.find(include); at != std::string::npos; at = text.find(include)) {
            const std::size_t name = at + include.size(), end = text.find('"', name);
            text.replace(at, end + 1 - at, read(folder + "/" + text.substr(name, end - name)));
        }
        const char* source = text.c_str();
        program_ = clCreateProgramWithSource(context_, 1, &source, nullptr, &status);
        check(status, "clCreateProgramWithSource");
        if (clBuildProgram(program_, 1, &device_, "", nullptr, nullptr) != CL_SUCCESS) {
            char log[8192] = {};
            clGetProgramBuildInfo(program_, device_, CL_PROGRAM_BUILD_LOG, sizeof log - 1, log, nullptr);
            throw std::runtime_error(std::string("OpenCL build failed: ") + log);
        }
    }

    const char* name() const override { return "PoCL"; }

    bool prepare(const KernelCase& problem) override {
        problem_ = &problem;
        for (cl_mem memory : buffers_) clReleaseMemObject(memory);
        buffers_.clear();
        cl_int status;
        for (const Bytes& bytes : problem.buffers) {
            buffers_.push_back(clCreateBuffer(context_, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, bytes.size(),
                                              const_cast<std::byte*>(bytes.data()), &status));
            check(status, "clCreateBuffer");
        }
        kernel_ = clCreateKernel(program_, problem.kernel.c_str(), &status);
        check(status, "clCreateKernel");
        for (std::size_t i = 0; i < problem.arguments.size(); ++i) {
            const Argument& argument = problem.arguments[i];
            if (argument.buffer >= 0)
                check(clSetKernelArg(kernel_, cl_uint(i), sizeof(cl_mem), &buffers_[argument.buffer]),
                      "clSetKernelArg");
            else
                check(clSetKernelArg(kernel_, cl_uint(i), 4, &argument.bits), "clSetKernelArg");
        }
        return true;
    }

    void run() override {
        std::size_t local[3], global[3];
        for (int i = 0; i < 3; ++i) {
            local[i] = problem_->block[i];
            global[i] = std::size_t(problem_->grid[i]) * local[i];
        }
        for (int i = 0; i < problem_->repeats; ++i)
            check(clEnqueueNDRangeKernel(queue_, kernel_, 3, nullptr, global, local, 0, nullptr, nullptr), "launch");
        check(clFinish(queue_), "clFinish");
    }

    Bytes output() override {
        Bytes bytes(problem_->buffers[problem_->output].size());
        check(clEnqueueReadBuffer(queue_, buffers_[problem_->output], CL_TRUE, 0, bytes.size(), bytes.data(), 0,
                                  nullptr, nullptr),
              "clEnqueueReadBuffer");
        return bytes;
    }

private:
    static std::string read(const std::string& path) {
        std::ifstream file(path);
        if (!file) throw std::runtime_error("cannot read " + path);
        return {std::istreambuf_iterator<char>(file), {}};
    }
    static void check(cl_int status, const char* what) {
        if (status != CL_SUCCESS)
            throw std::runtime_error(std::string(what) + " failed with " + std::to_string(status));
    }

    cl_device_id device_ = nullptr;
    cl_context context_ = nullptr;
    cl_command_queue queue_ = nullptr;
    cl_program program_ = nullptr;
    cl_kernel kernel_ = nullptr;
    const KernelCase* problem_ = nullptr;
    std::vector<cl_mem> buffers_;
};

} // namespace

std::unique_ptr<Peer> make_opencl_peer(const std::string& folder) {
    return std::make_unique<OpenClPeer>(folder);
}

} // namespace bench
