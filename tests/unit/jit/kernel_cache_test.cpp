// SPDX-License-Identifier: Apache-2.0
// Memory, disk and translator in a row, with a translator library made for the test.
#include "frontend/module_loader.h"
#include "runtime/module/compilation.h"
#include "runtime/module/kernel_cache.h"
#include "runtime/module/translator_library.h"
#include "temporary_folder.h"

#include <catch2/catch.hpp>

#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

using namespace ptarmigan;
using runtime::BackgroundOrder;
using runtime::CacheSettings;
using runtime::KernelCache;
using runtime::KernelRequest;

namespace {

class Fixture {
public:
    Fixture() : loader_(ptx::ModuleLoader::load(".version 9.0\n.target sm_90\n.address_size 64\n", "test.ptx")) {
        settings.directory = folder_.path + "/cache";
        settings.translator_library = FAKE_TRANSLATOR;
        setenv("FAKE_TRANSLATOR_LOG", log().c_str(), 1);
    }

    KernelRequest request(const std::string& kernel = "k") {
        KernelRequest request{*loader_, loader_mutex_, runtime::hash_text("text"), kernel, {}, {}};
        request.shape.ntid = {64, 1, 1};
        request.options.target = translator::named_target("host");
        return request;
    }
    /// Compilations in all processes so far.
    std::size_t compilations() const {
        std::error_code missing;
        const auto size = std::filesystem::file_size(log(), missing);
        return missing ? 0 : size;
    }
    std::vector<std::string> files() const {
        std::vector<std::string> found;
        if (std::filesystem::exists(settings.directory))
            for (const auto& entry : std::filesystem::directory_iterator(settings.directory))
                if (entry.path().extension() == ".ptmk") found.push_back(entry.path().string());
        return found;
    }

    CacheSettings settings;

private:
    std::string log() const { return folder_.path + "/log"; }

    TemporaryFolder folder_;
    std::unique_ptr<ptx::ModuleLoader> loader_;
    std::mutex loader_mutex_;
};

int call(const runtime::LoadedKernel& kernel) {
    int value = 0;
    reinterpret_cast<void (*)(int*)>(const_cast<void*>(kernel.entry))(&value);
    return value;
}

} // namespace

TEST_CASE("kernel cache: memory, then disk, then the translator") {
    Fixture fixture;
    {
        KernelCache cache(fixture.settings);
        const auto kernel = cache.get(fixture.request());
        CHECK(call(*kernel) == 42);
        CHECK(kernel->name == "k");
        CHECK(kernel->properties.step_count == 4);
        CHECK(cache.get(fixture.request()) == kernel);
        CHECK(cache.statistics().compilations == 1);
        CHECK(cache.statistics().memory_hits == 1);
    }
    KernelCache cache(fixture.settings);
    const auto kernel = cache.get(fixture.request());
    CHECK(call(*kernel) == 42);
    CHECK(kernel->properties.lane_width == 16);
    CHECK(kernel->image->entry_of(kernel->image->code_begin() + 6)->line == 8);
    CHECK(cache.statistics().disk_hits == 1);
    CHECK(cache.statistics().compilations == 0);
    CHECK(fixture.compilations() == 1);
}

TEST_CASE("kernel cache: every part of the request is part of the key") {
    Fixture fixture;
    KernelCache cache(fixture.settings);
    std::vector<std::shared_ptr<const runtime::LoadedKernel>> kernels;
    const auto get = [&](auto change) {
        KernelRequest request = fixture.request();
        change(request);
        kernels.push_back(cache.get(request));
    };
    get([](auto&) {});
    get([](auto& r) { r.kernel = "k2"; });
    get([](auto& r) { r.text_hash = runtime::hash_text("other text"); });
    get([](auto& r) { r.shape.ntid = {1, 64, 1}; });
    get([](auto& r) { r.shape.cluster = {2, 1, 1}; });
    get([](auto& r) { r.options.target = translator::named_target("x86-64-v3"); });
    get([](auto& r) { r.options.lane_width = 8; });
    get([](auto& r) { r.options.divergence = translator::DivergenceForm::program_counters; });
    get([](auto& r) { r.options.barriers = translator::BarrierForm::fibers; });
    get([](auto& r) { r.options.optimization = translator::Optimization::least; });
    get([](auto& r) { r.options.approximation = translator::Approximation::fast; });
    get([](auto& r) { r.options.small_grid = true; });
    get([](auto& r) { r.options.random_schedule = true; });
    CHECK(cache.statistics().compilations == kernels.size());
    CHECK(fixture.files().size() == kernels.size());
}

TEST_CASE("kernel cache: a form that works is kept for the one that crashes") {
    Fixture fixture;
    {
        KernelCache cache(fixture.settings);
        const auto kernel = cache.get(fixture.request("crashes"));
        CHECK(call(*kernel) == 42);
        CHECK(kernel->form.lane_width == 1);
        CHECK(kernel->form.optimization == translator::Optimization::least);
    }
    const std::size_t attempts = fixture.compilations();
    CHECK(attempts > 2);
    KernelCache cache(fixture.settings);
    const auto kernel = cache.get(fixture.request("crashes"));
    CHECK(call(*kernel) == 42);
    CHECK(kernel->form.lane_width == 1);
    CHECK(kernel->form.optimization == translator::Optimization::least);
    CHECK(cache.statistics().disk_hits == 1);
    CHECK(fixture.compilations() == attempts);
}

TEST_CASE("forms to fall back to: what lanes of a warp count on comes first") {
    using namespace translator;
    CompileProgress failed;
    failed.stage = CompileProgress::Stage::code_generation;
    failed.lane_width = 32;
    failed.whole_warp = true;
    CompileForm asked;
    asked.barriers = BarrierForm::fibers;
    auto forms = runtime::fallback_forms(asked, failed);
    bool narrow = false;
    for (const CompileForm& form : forms) {
        CHECK(form != asked);
        CHECK(form.barriers == BarrierForm::fibers);
        if (narrow) CHECK(form.lane_width < 32);
        narrow = form.lane_width < 32;
    }
    CHECK(forms.front().optimization == Optimization::least);
    failed.whole_warp = false;
    forms = runtime::fallback_forms(asked, failed);
    CHECK(forms.front().lane_width == 16);
    CHECK(forms.front().optimization == Optimization::full);
    CHECK(forms.back().lane_width == 1);
    // What can't be emitted is emitted no better without optimisation.
    failed.stage = CompileProgress::Stage::emission;
    failed.whole_warp = true;
    CHECK(runtime::fallback_forms(asked, failed).front().optimization == Optimization::full);
}

TEST_CASE("kernel cache: another build of the translator has another key") {
    Fixture fixture;
    (void)KernelCache(fixture.settings).get(fixture.request());
    // The same library with another build id: change the note's last byte in a copy.
    const std::string id = runtime::translator_build_id(FAKE_TRANSLATOR);
    REQUIRE(id.size() >= 8);
    std::ifstream original(FAKE_TRANSLATOR, std::ios::binary);
    std::string bytes((std::istreambuf_iterator<char>(original)), {});
    std::string raw;
    for (std::size_t i = 0; i + 1 < id.size(); i += 2)
        raw += static_cast<char>(std::stoi(id.substr(i, 2), nullptr, 16));
    const std::size_t at = bytes.find(raw);
    if (at != std::string::npos) bytes[at] ^= 1;
    std::ofstream(FAKE_TRANSLATOR_COPY, std::ios::binary) << bytes;
    CHECK(runtime::translator_build_id(FAKE_TRANSLATOR_COPY) != id);
    fixture.settings.translator_library = FAKE_TRANSLATOR_COPY;
    KernelCache cache(fixture.settings);
    (void)cache.get(fixture.request());
    CHECK(cache.statistics().compilations == 1);
}

TEST_CASE("kernel cache: damaged files are replaced") {
    Fixture fixture;
    (void)KernelCache(fixture.settings).get(fixture.request());
    const auto files = fixture.files();
    REQUIRE(files.size() == 1);
    for (const std::string& damage : {std::string(), std::string("rubbish"), std::string(100000, 'x')}) {
        std::ofstream(files[0], std::ios::binary) << damage;
        KernelCache cache(fixture.settings);
        CHECK(call(*cache.get(fixture.request())) == 42);
        CHECK(cache.statistics().rejected_files == 1);
        CHECK(cache.statistics().compilations == 1);
        KernelCache again(fixture.settings);
        CHECK(call(*again.get(fixture.request())) == 42);
        CHECK(again.statistics().disk_hits == 1);
    }
}

TEST_CASE("kernel cache: ready-made kernels are found below the user's folder, which alone is written to") {
    Fixture fixture;
    { KernelCache(fixture.settings).get(fixture.request("ready")); }
    const auto made = fixture.files();
    const std::string system = fixture.settings.directory, missing = system + "-missing";
    fixture.settings.system_directories = {missing, system};
    fixture.settings.directory = system + "-user";
    {
        KernelCache cache(fixture.settings);
        CHECK(call(*cache.get(fixture.request("ready"))) == 42);
        CHECK(cache.statistics().disk_hits == 1);
        CHECK(fixture.files().empty());
        CHECK(call(*cache.get(fixture.request("new"))) == 42);
        CHECK(cache.statistics().compilations == 1);
        CHECK(fixture.files().size() == 1);
        cache.keep_note(runtime::hash_text("text"), "fact", std::vector<std::uint8_t>{1});
        CHECK(fixture.files().size() == 2);
    }
    CHECK(!std::filesystem::exists(missing));

    // A damaged file in front does not hide a good one behind.
    const std::string name = std::filesystem::path(made.at(0)).filename().string();
    std::ofstream(fixture.settings.directory + "/" + name) << "damaged";
    {
        KernelCache cache(fixture.settings);
        CHECK(call(*cache.get(fixture.request("ready"))) == 42);
        CHECK(cache.statistics().rejected_files == 1);
        CHECK(cache.statistics().disk_hits == 1);
    }

    // Without a folder of the user's own, and not from one that others may write to.
    fixture.settings.directory.clear();
    {
        KernelCache cache(fixture.settings);
        CHECK(call(*cache.get(fixture.request("ready"))) == 42);
        CHECK(call(*cache.get(fixture.request("new"))) == 42);
        CHECK(cache.statistics().disk_hits == 1);
    }
    REQUIRE(chmod(system.c_str(), 0777) == 0);
    KernelCache cache(fixture.settings);
    CHECK(call(*cache.get(fixture.request("ready"))) == 42);
    CHECK(cache.statistics().compilations == 1);
}

TEST_CASE("kernel cache: switched off, it keeps nothing on disk") {
    Fixture fixture;
    fixture.settings.enabled = false;
    KernelCache cache(fixture.settings);
    auto kernel = cache.get(fixture.request());
    CHECK(call(*kernel) == 42);
    CHECK(fixture.files().empty());
    kernel.reset(); // nobody holds it: it is gone from memory too
    kernel = cache.get(fixture.request());
    CHECK(fixture.compilations() == 2);
}

TEST_CASE("kernel cache: threads that ask for one key compile it once") {
    Fixture fixture;
    KernelCache cache(fixture.settings);
    std::vector<std::shared_ptr<const runtime::LoadedKernel>> kernels(16);
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < kernels.size(); ++i)
        threads.emplace_back([&, i] { kernels[i] = cache.get(fixture.request(i % 2 ? "a" : "b")); });
    for (std::thread& thread : threads) thread.join();
    CHECK(cache.statistics().compilations == 2);
    for (std::size_t i = 2; i < kernels.size(); ++i) CHECK(kernels[i] == kernels[i % 2]);
}

TEST_CASE("kernel cache: machine code for kernels of one text is made side by side") {
    Fixture fixture;
    KernelCache cache(fixture.settings);
    std::vector<std::shared_ptr<const runtime::LoadedKernel>> kernels(2);
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < kernels.size(); ++i)
        threads.emplace_back([&, i] { kernels[i] = cache.get(fixture.request("meets" + std::to_string(i))); });
    for (std::thread& thread : threads) thread.join();
    CHECK(fixture.compilations() == 2); // no attempt failed
    for (const auto& kernel : kernels) CHECK(call(*kernel) == 42);
}

namespace {

/// For this thread: priorities of others can't be raised.
void give_up_raising() {
    const rlimit none{0, 0};
    setrlimit(RLIMIT_NICE, &none);
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = {};
    syscall(SYS_capget, &header, sets);
    sets[CAP_TO_INDEX(CAP_SYS_NICE)].effective &= ~CAP_TO_MASK(CAP_SYS_NICE);
    syscall(SYS_capset, &header, sets);
}

bool has_low_thread() {
    const int own = getpriority(PRIO_PROCESS, 0);
    for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task"))
        if (getpriority(PRIO_PROCESS, static_cast<id_t>(std::stoi(thread.path().filename()))) > own) return true;
    return false;
}

/// What `work` returns, done in a child, whose fake translator has not compiled anything yet. It gets 20 s.
template <typename Work> bool in_child(const Work& work) {
    const pid_t child = fork();
    if (child == 0) {
        alarm(20);
        _exit(work() ? 0 : 1);
    }
    int status = -1;
    return waitpid(child, &status, 0) == child && status == 0;
}

/// A background thread compiles a kernel and gets no CPU once its priority is low; then a launch wants the kernel.
bool launch_gets_code(const CacheSettings& settings, KernelRequest request, const std::function<void()>& set_up) {
    KernelCache cache(settings);
    KernelRequest later = request;
    later.background = BackgroundOrder::later;
    std::shared_ptr<const runtime::LoadedKernel> first, second;
    std::thread background([&] { first = cache.get(later); });
    for (int looks = 0; looks < 1000 && !has_low_thread(); ++looks) ::usleep(1000);
    std::thread launch([&] {
        set_up();
        second = cache.get(request);
    });
    launch.join();
    const bool right = call(*second) == 42;
    background.join(); // raised, or behind the other one
    return right && first == second; // whoever made it
}

} // namespace

TEST_CASE("kernel cache: a launch does not wait for a thread of low priority that gets no CPU") {
    Fixture fixture;
    KernelRequest request = fixture.request("starves");
    const auto waits = [&](const std::function<void()>& set_up) {
        return in_child([&] { return launch_gets_code(fixture.settings, request, set_up); });
    };
    fixture.settings.enabled = false;
    // Where priorities can't be raised it compiles the kernel beside, and the other thread stops.
    CHECK(waits(give_up_raising));
    // Where they can (by root, say) the other thread ends it. Elsewhere this is the same test again.
    CHECK(waits([] {}));
    request.background = BackgroundOrder::overdue; // wanted as much as by a launch
    CHECK(waits(give_up_raising));
}

TEST_CASE("kernel cache: processes share a folder") {
    Fixture fixture;
    constexpr int processes = 4, kernels = 6;
    for (int process = 0; process < processes; ++process) {
        if (fork() != 0) continue;
        KernelCache cache(fixture.settings);
        bool right = true;
        for (int i = 0; i < kernels; ++i)
            right &= call(*cache.get(fixture.request("k" + std::to_string(i)))) == 42;
        _exit(right ? 0 : 1);
    }
    for (int process = 0; process < processes; ++process) {
        int status = -1;
        REQUIRE(wait(&status) > 0);
        CHECK(status == 0);
    }
    CHECK(fixture.files().size() == kernels);
    KernelCache cache(fixture.settings);
    for (int i = 0; i < kernels; ++i) (void)cache.get(fixture.request("k" + std::to_string(i)));
    CHECK(cache.statistics().disk_hits == kernels);
}

TEST_CASE("kernel cache: errors reach the caller and are not kept") {
    Fixture fixture;
    KernelCache cache(fixture.settings);
    for (int i = 0; i < 2; ++i)
        CHECK_THROWS_AS(cache.get(fixture.request("unsupported")), translator::UnsupportedError);
    CHECK(call(*cache.get(fixture.request())) == 42);

    fixture.settings.translator_library = "/nowhere/libptarmigan-translator.so";
    KernelCache broken(fixture.settings);
    CHECK_THROWS_WITH(broken.get(fixture.request()), Catch::Contains("/nowhere/"));
    fixture.settings.translator_library.clear();
    KernelCache lost(fixture.settings);
    CHECK_THROWS_WITH(lost.get(fixture.request()), Catch::Contains("PTARMIGAN_TRANSLATOR"));
}

TEST_CASE("kernel cache: notes are kept per text and subject, on disk") {
    Fixture fixture;
    const auto text = runtime::hash_text("text"), other = runtime::hash_text("other");
    const std::vector<std::uint8_t> contents{7, 8, 9};
    {
        KernelCache cache(fixture.settings);
        CHECK_FALSE(cache.note(text, "subject"));
        cache.keep_note(text, "subject", contents);
    }
    KernelCache cache(fixture.settings);
    CHECK(cache.note(text, "subject") == contents);
    CHECK_FALSE(cache.note(text, "another subject"));
    CHECK_FALSE(cache.note(other, "subject"));
    REQUIRE(fixture.files().size() == 1);
    std::ofstream(fixture.files()[0], std::ios::app) << 'x';
    CHECK_FALSE(cache.note(text, "subject"));
    cache.keep_note(text, "subject", contents);
    CHECK(cache.note(text, "subject") == contents);

    CacheSettings off = fixture.settings;
    off.enabled = false;
    KernelCache disabled(off);
    CHECK_FALSE(disabled.note(text, "subject"));
    disabled.keep_note(other, "subject", contents);
    CHECK_FALSE(cache.note(other, "subject"));
}
