// SPDX-License-Identifier: Apache-2.0
// Loops over steps that are written out as a line (translator/llvm/join_step_loops.h) leave the memory that the loops
// leave. Random ones, each beside itself without the mark that says that they are loops over steps.
#include "ir_fixture.h"
#include "runtime/code/image_loader.h"
#include "translator/kernel_abi.h"

#include <catch2/catch.hpp>

#include <cstddef>
#include <random>
#include <string>
#include <vector>

using namespace ptarmigan;

namespace {

constexpr unsigned words = 256; ///< of shared memory, and of frames

std::string number(std::uint64_t n) { return std::to_string(n); }

/// Loops of two to four steps, some of them in loops of their own: loads, stores, gathers and scatters of words, pairs
/// and vectors under masks and behind branches that the step's number decides, and some that data do.
class StepProgram {
public:
    explicit StepProgram(unsigned seed) : random_(seed), oddity_(below(3)) {
        text_ = "declare i32 @llvm.vector.reduce.add.v8i32(<8 x i32>)\n"
                "declare <8 x i32> @llvm.masked.load.v8i32.p0(ptr, i32, <8 x i1>, <8 x i32>)\n"
                "declare void @llvm.masked.store.v8i32.p0(<8 x i32>, ptr, i32, <8 x i1>)\n"
                "declare <8 x i32> @llvm.masked.gather.v8i32.v8p0(<8 x ptr>, i32, <8 x i1>, <8 x i32>)\n"
                "declare void @llvm.masked.scatter.v8i32.v8p0(<8 x i32>, <8 x ptr>, i32, <8 x i1>)\n"
                "declare void @llvm.lifetime.start.p0(i64, ptr)\ndeclare void @llvm.lifetime.end.p0(i64, ptr)\n"
                "define void @ptarmigan_kernel(ptr %cta) {\nentry:\n  %own = alloca [8 x i32], align 32\n  %other = alloca [8 x i32], align 32\n"
                "  %step = getelementptr i8, ptr %cta, i64 " + number(offsetof(abi::CtaContext, step)) + "\n" +
                field("shared", offsetof(abi::CtaContext, shared)) + field("frames", offsetof(abi::CtaContext, frames));
        block_ = "entry";
        sum_ = "1";
        if (below(4)) fill();
        const unsigned parts = 2 + below(4);
        for (unsigned part = 0; part < parts; ++part)
            if (below(3))
                add_loop();
            else
                add_rounds();
        line("store i32 " + sum_ + ", ptr %frames");
        line("ret void");
        text_ += "}\n!0 = !{}\n";
    }

    const std::string& text() const { return text_; }
    std::string without_steps() const {
        const std::string mark = ", !ptarmigan.steps !0";
        std::string text = text_;
        for (std::size_t at; (at = text.find(mark)) != std::string::npos;) text.erase(at, mark.size());
        return text;
    }

private:
    unsigned below(unsigned limit) { return unsigned(random_() % limit); }
    bool odd(unsigned chances) { return below(3 * chances) < oddity_; }
    std::string name() { return "%v" + number(names_++); }
    void line(const std::string& text) { text_ += "  " + text + "\n"; }
    std::string value(const std::string& text) {
        const std::string result = name();
        line(result + " = " + text);
        return result;
    }
    static std::string field(const std::string& name, std::size_t offset) {
        return "  %" + name + ".field = getelementptr i8, ptr %cta, i64 " + number(offset) + "\n  %" + name +
               " = load ptr, ptr %" + name + ".field, align 8, !invariant.load !0\n";
    }
    void begin(const std::string& block) {
        text_ += block + ":\n";
        block_ = block;
    }
    std::string vector(const char* type, unsigned limit, unsigned factor) {
        std::string result = "<";
        for (unsigned i = 0; i < 8; ++i) result += (i ? ", " : "") + std::string(type) + " " + number(below(limit) * factor);
        return result + ">";
    }

    /// The block behind has the loop's sum.
    void add_loop() {
        const std::string id = number(loops_++), before = block_, steps = number(2 + below(3)), sum = name();
        line("br label %loop" + id);
        begin("loop" + id);
        const std::size_t phi = text_.size();
        const std::string start = sum_;
        step_ = "%s" + id;
        sum_ = sum;
        line("store i32 " + step_ + ", ptr %step");
        loaded_.clear();
        std::string left_from, left_sum;
        const unsigned statements = 1 + below(5), end = below(8);
        for (unsigned statement = 0; statement < statements; ++statement) {
            if (below(4))
                access();
            else
                branch();
            if (statement == end) { // a second end
                const std::string leaves = value("icmp eq i32 " + step_ + ", " + number(1 + below(3)));
                left_from = block_;
                left_sum = sum_;
                line("br i1 " + leaves + ", label %done" + id + ", label %on" + id);
                begin("on" + id);
            }
        }
        const std::string next = value("add i32 " + step_ + ", 1");
        const std::string more = value("icmp ult i32 " + next + ", " + steps);
        line("br i1 " + more + ", label %loop" + id + ", label %done" + id + ", !ptarmigan.steps !0");
        text_.insert(phi, "  " + step_ + " = phi i32 [0, %" + before + "], [" + next + ", %" + block_ + "]\n  " + sum +
                              " = phi i32 [" + start + ", %" + before + "], [" + sum_ + ", %" + block_ + "]\n");
        const std::string last = block_;
        if (left_from.empty()) earlier_.push_back(sum_);
        begin("done" + id);
        const std::string result = name();
        line(result + " = phi i32 [" + sum_ + ", %" + last + "]" +
             (left_from.empty() ? "" : ", [" + left_sum + ", %" + left_from + "]"));
        sum_ = result;
        earlier_.push_back(result);
        loaded_.clear();
    }

    void add_rounds() {
        const std::string id = number(loops_++), before = block_, start = sum_, sum = name(), round = name();
        line("br label %rounds" + id);
        begin("rounds" + id);
        const std::size_t phi = text_.size();
        sum_ = sum;
        const unsigned loops = 1 + below(3);
        for (unsigned loop = 0; loop < loops; ++loop) {
            if (below(3) == 0) turn();
            add_loop();
            if (below(2)) sum_ = value("add i32 " + sum_ + ", " + round);
        }
        const std::string next = value("add i32 " + round + ", 1");
        std::string limit = number(1 + below(3));
        if (!below(3)) limit = value("and i32 " + sum_ + ", 3");
        const std::string more = value("icmp ult i32 " + next + ", " + limit);
        line("br i1 " + more + ", label %rounds" + id + ", label %ended" + id);
        text_.insert(phi, "  " + round + " = phi i32 [0, %" + before + "], [" + next + ", %" + block_ + "]\n  " + sum +
                              " = phi i32 [" + start + ", %" + before + "], [" + sum_ + ", %" + block_ + "]\n");
        begin("ended" + id);
    }

    /// All words of shared memory, so that most loads behind know theirs.
    void fill() {
        line("br label %fill");
        begin("fill");
        line("%at = phi i32 [0, %entry], [%at.next, %fill]");
        line("%at.wide = zext i32 %at to i64");
        line("%at.bytes = mul i64 %at.wide, " + number(words));
        line("%at.place = getelementptr i8, ptr %shared, i64 %at.bytes");
        for (unsigned i = 0; i < words / 4; i += 8)
            line("store <8 x i32> " + vector("i32", 1000, 1) + ", ptr " + value("getelementptr i8, ptr %at.place, i64 " + number(4 * i)) + ", align 1");
        line("%at.next = add i32 %at, 1");
        line("br i1 " + value("icmp ult i32 %at.next, 4") + ", label %fill, label %filled, !ptarmigan.steps !0");
        begin("filled");
    }

    /// Data decide which way it goes on, so that no line goes through here.
    void turn() {
        const std::string id = number(loops_++), from = block_;
        line("br i1 " + value("icmp ne i32 " + value("and i32 " + sum_ + ", 4") + ", 0") + ", label %left" + id + ", label %right" + id);
        begin("left" + id);
        line("br label %right" + id);
        begin("right" + id);
        sum_ = value("phi i32 [" + sum_ + ", %" + from + "], [7, %left" + id + "]");
    }

    std::string condition() {
        if (odd(2)) return value("icmp ne i32 " + value("and i32 " + sum_ + ", 4") + ", 0");
        return value("icmp ult i32 " + step_ + ", " + number(below(4)));
    }

    void branch() {
        const std::string id = number(loops_++), from = block_, before = sum_;
        line("br i1 " + condition() + ", label %then" + id + ", label %behind" + id);
        begin("then" + id);
        const std::vector<std::string> loaded = loaded_;
        access();
        if (below(2)) access();
        loaded_ = loaded;
        line("br label %behind" + id);
        const std::string last = block_, inside = sum_;
        begin("behind" + id);
        sum_ = value("phi i32 [" + before + ", %" + from + "], [" + inside + ", %" + last + "]");
    }

    /// Of eight words, or of lanes at places of their own.
    std::string pointer(bool of_lanes) {
        const unsigned stride = 4u * (below(3) ? 8 : below(12));
        const std::string from = below(5) ? "%shared" : "%frames", wide = value("zext i32 " + step_ + " to i64");
        const std::string distance = value("mul i64 " + wide + ", " + number(stride));
        const std::string base = value("getelementptr i8, ptr " + from + ", i64 " + distance);
        if (!of_lanes) {
            // Ends of pieces that are not those of others, at times.
            const unsigned offset = below(3) ? 32 * below(12) : odd(1) ? below(400) : 4 * below(100);
            return value("getelementptr i8, ptr " + base + ", i64 " + number(offset));
        }
        return value("getelementptr i8, ptr " + base + ", <8 x i64> " + vector("i64", 100, 4));
    }

    std::string mask() {
        if (below(3) == 0) return "<i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true, i1 true>";
        if (below(2)) return vector("i1", 2, 1);
        const std::string by = odd(1) ? sum_ : value("mul i32 " + step_ + ", " + number(below(5)));
        const std::string one = value("insertelement <8 x i32> poison, i32 " + by + ", i64 0");
        const std::string all = value("shufflevector <8 x i32> " + one + ", <8 x i32> poison, <8 x i32> zeroinitializer");
        return value("icmp ult <8 x i32> " + vector("i32", 8, 1) + ", " + all);
    }

    std::string stored() {
        if (!loaded_.empty() && below(2)) {
            const std::string& a = loaded_[below(unsigned(loaded_.size()))];
            const std::string& b = loaded_[below(unsigned(loaded_.size()))];
            if (below(2)) return a;
            return value("shufflevector <8 x i32> " + a + ", <8 x i32> " + b + ", <8 x i32> " + vector("i32", 16, 1));
        }
        const std::string one = value("insertelement <8 x i32> poison, i32 " + sum_ + ", i64 0");
        const std::string all = value("shufflevector <8 x i32> " + one + ", <8 x i32> poison, <8 x i32> zeroinitializer");
        return value("add <8 x i32> " + all + ", " + vector("i32", 1000, 1));
    }

    void add_to_sum(const std::string& what) { sum_ = value("add i32 " + value("mul i32 " + sum_ + ", 3") + ", " + what); }
    void take(const std::string& loaded) {
        add_to_sum(value("call i32 @llvm.vector.reduce.add.v8i32(<8 x i32> " + loaded + ")"));
        loaded_.push_back(loaded);
    }

    void access() {
        if (!earlier_.empty() && below(3) == 0) add_to_sum(earlier_[below(unsigned(earlier_.size()))]);
        const char* const others[] = {"i8", "i16", "i32", "i64"};
        const std::string type = others[odd(1) ? below(4) : 2];
        switch (below(10)) {
        case 0: take(value("load <8 x i32>, ptr " + pointer(false) + ", align 1")); break;
        case 1: take(value("load <8 x i32>, ptr " + pointer(false) + ", align 1")); break;
        case 2: {
            const std::string what = stored();
            line("store <8 x i32> " + what + ", ptr " + pointer(false) + ", align 1");
            break;
        }
        case 3: {
            const std::string where = pointer(false), which = mask();
            take(value("call <8 x i32> @llvm.masked.load.v8i32.p0(ptr " + where + ", i32 1, <8 x i1> " + which +
                       ", <8 x i32> " + vector("i32", 100, 1) + ")"));
            break;
        }
        case 4: {
            const std::string what = stored(), where = pointer(false), which = mask();
            line("call void @llvm.masked.store.v8i32.p0(<8 x i32> " + what + ", ptr " + where + ", i32 1, <8 x i1> " + which + ")");
            break;
        }
        case 5: {
            const std::string where = pointer(true), which = mask();
            take(value("call <8 x i32> @llvm.masked.gather.v8i32.v8p0(<8 x ptr> " + where + ", i32 1, <8 x i1> " +
                       which + ", <8 x i32> " + vector("i32", 100, 1) + ")"));
            break;
        }
        case 6: {
            const std::string what = stored(), where = pointer(true), which = mask();
            line("call void @llvm.masked.scatter.v8i32.v8p0(<8 x i32> " + what + ", <8 x ptr> " + where + ", i32 1, <8 x i1> " + which + ")");
            break;
        }
        case 7: {
            const std::string loaded = value("load " + type + ", ptr " + pointer(false) + ", align 1");
            add_to_sum(type == "i32" ? loaded : value((type == "i64" ? "trunc i64 " : "sext " + type + " ") + loaded + " to i32"));
            break;
        }
        case 8: {
            const std::string what = type == "i32"   ? sum_
                                     : type == "i64" ? value("zext i32 " + sum_ + " to i64")
                                                     : value("trunc i32 " + sum_ + " to " + type);
            line("store " + type + " " + what + ", ptr " + pointer(false) + ", align 1");
            break;
        }
        case 9: { // through a variable, which lives for as long
            const std::string variable = below(2) ? "%own" : "%other", what = stored();
            line("call void @llvm.lifetime.start.p0(i64 32, ptr " + variable + ")");
            line("store <8 x i32> " + what + ", ptr " + variable + ", align 32");
            const std::string at = value("getelementptr i8, ptr " + variable + ", i64 " + number(4 * below(8)));
            add_to_sum(value("load i32, ptr " + at + ", align 4"));
            line("call void @llvm.lifetime.end.p0(i64 32, ptr " + variable + ")");
            break;
        }
        }
    }

    std::mt19937 random_;
    unsigned oddity_; ///< 0: nothing that data decide, and no parts of words
    std::string text_, block_, sum_, step_;
    std::vector<std::string> loaded_; ///< in this step, and not behind a branch alone
    std::vector<std::string> earlier_; ///< what loops before have left, and have had in their last step
    unsigned names_ = 0, loops_ = 0;
};

std::vector<std::uint32_t> run(const std::string& ir) {
    const auto image = runtime::LoadedImage::load(translator::image_of_ir(ir), "steps");
    std::vector<std::uint32_t> memory(2 * words);
    for (unsigned i = 0; i < memory.size(); ++i) memory[i] = i * 2654435761u;
    abi::CtaContext context{};
    context.shared = reinterpret_cast<std::uint8_t*>(memory.data());
    context.frames = reinterpret_cast<std::uint8_t*>(memory.data() + words);
    reinterpret_cast<void (*)(void*)>(const_cast<void*>(image->entry()))(&context);
    return memory;
}

} // namespace

TEST_CASE("step lines: random loops leave what they leave one by one") {
    for (unsigned seed = 0; seed < 300; ++seed) {
        const StepProgram program(seed);
        INFO("seed " << seed << "\n" << program.text());
        const auto expected = run(program.without_steps());
        if (run(program.text()) != expected) FAIL_CHECK("other memory");
    }
}
