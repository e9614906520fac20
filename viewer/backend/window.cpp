// See window.h. Each window has its own context of Dear ImGui, into which its events go: GLFW reports the
// events of all windows whichever context is current.
#include "viewer/backend/window.h"

#include <array>
#include <cfloat>
#include <cstdint>
#include <cstring>
#include <deque>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include <GLFW/glfw3.h>
#include <backends/imgui_impl_glfw.h>
#include <backends/imgui_impl_opengl3.h>
#include <fmt/core.h>
#include <imgui.h>

#include "viewer/backend/icon.h"

namespace shardscope::viewer::backend {
namespace {

constexpr int kOpenGlMajor = 3, kOpenGlMinor = 3;
constexpr const char* kName = "shardscope-view";  // as the desktop file is called
constexpr int kFramesAfterInput = 3;  // ImGui settles hovers, popups and scrolling over a few frames

// Of the latest call of GLFW that failed.
std::string reason() {
    const char* text = nullptr;
    glfwGetError(&text);
    return text ? text : "unknown reason";
}

[[noreturn]] void fail() {
    throw std::runtime_error(fmt::format(
        "No window can be opened ({}); with --screenshot OUT.png the viewer draws without a display.",
        reason()));
}

// The display is there, and makes no window with our OpenGL.
[[noreturn]] void fail_without_opengl() {
    throw std::runtime_error(
        fmt::format("No window can be opened: the display offers no OpenGL {}.{} ({}); set "
                    "LIBGL_ALWAYS_SOFTWARE=1 to draw on the processor, or draw pictures with --screenshot "
                    "OUT.png.",
                    kOpenGlMajor, kOpenGlMinor, reason()));
}

void set_icon(GLFWwindow* window) {
    std::array<std::vector<std::uint8_t>, 2> pixels;
    std::array<GLFWimage, 2> images{};
    for (std::size_t i = 0; i < images.size(); ++i) {
        const int size = i == 0 ? 16 : 48;
        pixels[i] = icon_pixels(size);
        images[i] = {size, size, pixels[i].data()};
    }
    glfwSetWindowIcon(window, static_cast<int>(images.size()), images.data());
}

}  // namespace

namespace {

int g_windows = 0;  // GLFW's state is global to the process

}  // namespace

struct Window::Impl {
    GLFWwindow* handle = nullptr;
    ImGuiContext* context = ImGui::GetCurrentContext();
    bool glfw = false, platform = false, renderer = false;
    std::function<void(const std::string&)> drop;
    // Keys pressed since the last frame. Dear ImGui before 1.87 sees only keys that are down when a frame
    // begins; a key released before that would be lost.
    struct Press {
        int key = 0, mods = 0;
    };
    std::deque<Press> presses;
    std::optional<Press> held;  // passed to ImGui in the previous frame
    // Where the mouse was at its latest event, and when a button was pressed since the last frame: Dear ImGui
    // before 1.87 takes a press to be where the mouse is when the frame begins.
    ImVec2 mouse{-FLT_MAX, -FLT_MAX};
    std::optional<ImVec2> pressed_at;

    void show_presses() {
#if IMGUI_VERSION_NUM < 18700
        ImGuiIO& io = ImGui::GetIO();
        if (pressed_at) {
            io.MousePos = *pressed_at;
            pressed_at.reset();
            frames_owed = kFramesAfterInput;  // the next one has the mouse where it is
        }
        const auto down = [&](int key) { return glfwGetKey(handle, key) == GLFW_PRESS; };
        if (held) {
            io.KeysDown[held->key] = down(held->key);
            io.KeyCtrl = down(GLFW_KEY_LEFT_CONTROL) || down(GLFW_KEY_RIGHT_CONTROL);
            io.KeyShift = down(GLFW_KEY_LEFT_SHIFT) || down(GLFW_KEY_RIGHT_SHIFT);
            io.KeyAlt = down(GLFW_KEY_LEFT_ALT) || down(GLFW_KEY_RIGHT_ALT);
            held.reset();
        }
        if (presses.empty()) return;
        // Each press gets its own frame, with the modifiers of that moment; later presses wait.
        const Press press = presses.front();
        presses.pop_front();
        for (const Press& later : presses) io.KeysDown[later.key] = false;
        io.KeysDown[press.key] = true;
        io.KeyCtrl = (press.mods & GLFW_MOD_CONTROL) != 0;
        io.KeyShift = (press.mods & GLFW_MOD_SHIFT) != 0;
        io.KeyAlt = (press.mods & GLFW_MOD_ALT) != 0;
        held = press;
        frames_owed = kFramesAfterInput;
#else
        presses.clear();
#endif
    }
    int frames_owed = kFramesAfterInput;

    // Every window event makes frames due, and goes to the window's own context.
    void listen() const {
        static constexpr auto owe = [](GLFWwindow* window) -> Impl& {
            auto& impl = *static_cast<Impl*>(glfwGetWindowUserPointer(window));
            impl.frames_owed = kFramesAfterInput;
            return impl;
        };
        static constexpr auto pass = [](GLFWwindow* window, auto callback, auto... event) {
            ImGuiContext* before = ImGui::GetCurrentContext();
            ImGui::SetCurrentContext(owe(window).context);
            callback(window, event...);
            ImGui::SetCurrentContext(before);
        };
        glfwSetKeyCallback(handle, [](GLFWwindow* w, int key, int code, int action, int mods) {
            if (action == GLFW_PRESS && key >= 0) owe(w).presses.push_back({key, mods});
            pass(w, ImGui_ImplGlfw_KeyCallback, key, code, action, mods);
        });
        glfwSetCharCallback(handle,
                            [](GLFWwindow* w, unsigned c) { pass(w, ImGui_ImplGlfw_CharCallback, c); });
        glfwSetMouseButtonCallback(handle, [](GLFWwindow* w, int button, int action, int mods) {
            Impl& impl = owe(w);
            if (action == GLFW_PRESS && impl.mouse.x != -FLT_MAX) impl.pressed_at = impl.mouse;
            pass(w, ImGui_ImplGlfw_MouseButtonCallback, button, action, mods);
        });
        glfwSetScrollCallback(
            handle, [](GLFWwindow* w, double x, double y) { pass(w, ImGui_ImplGlfw_ScrollCallback, x, y); });
#if IMGUI_VERSION_NUM < 18700
        glfwSetCursorPosCallback(handle, [](GLFWwindow* w, double x, double y) {
            owe(w).mouse = {static_cast<float>(x), static_cast<float>(y)};
        });
#else
        glfwSetCursorPosCallback(handle, [](GLFWwindow* w, double x, double y) {
            pass(w, ImGui_ImplGlfw_CursorPosCallback, x, y);
        });
#endif
        glfwSetCursorEnterCallback(
            handle, [](GLFWwindow* w, int entered) { pass(w, ImGui_ImplGlfw_CursorEnterCallback, entered); });
        glfwSetWindowFocusCallback(
            handle, [](GLFWwindow* w, int focused) { pass(w, ImGui_ImplGlfw_WindowFocusCallback, focused); });
        glfwSetWindowRefreshCallback(handle, [](GLFWwindow* w) { owe(w); });
        glfwSetFramebufferSizeCallback(handle, [](GLFWwindow* w, int, int) { owe(w); });
    }

    std::pair<int, int> pixels() const {
        int width = 0, height = 0;
        glfwGetFramebufferSize(handle, &width, &height);
        return {width, height};
    }
    void paint() const {
        make_current();
        const auto [width, height] = pixels();
        glViewport(0, 0, width, height);
        glClearColor(0, 0, 0, 1);
        glClear(GL_COLOR_BUFFER_BIT);
        ImGui_ImplOpenGL3_RenderDrawData(ImGui::GetDrawData());
    }

    void make_current() const {
        glfwMakeContextCurrent(handle);
    }

    ~Impl() {
        if (handle != nullptr) make_current();
        if (renderer) ImGui_ImplOpenGL3_Shutdown();
        if (platform) ImGui_ImplGlfw_Shutdown();
        if (handle != nullptr) glfwDestroyWindow(handle);
        if (glfw && --g_windows == 0) glfwTerminate();
    }
};

Window::Window(const WindowSize& size) : impl_(std::make_unique<Impl>()) {
    impl_->glfw = glfwInit() == GLFW_TRUE;
    if (!impl_->glfw) fail();
    ++g_windows;
    glfwWindowHint(GLFW_CONTEXT_VERSION_MAJOR, kOpenGlMajor);
    glfwWindowHint(GLFW_CONTEXT_VERSION_MINOR, kOpenGlMinor);
    glfwWindowHint(GLFW_OPENGL_PROFILE, GLFW_OPENGL_CORE_PROFILE);
    glfwWindowHint(GLFW_SCALE_TO_MONITOR, size.exact ? GLFW_FALSE : GLFW_TRUE);
    glfwWindowHint(GLFW_MAXIMIZED, size.maximized ? GLFW_TRUE : GLFW_FALSE);
    glfwWindowHintString(GLFW_X11_CLASS_NAME, kName);
    glfwWindowHintString(GLFW_X11_INSTANCE_NAME, kName);
#ifdef GLFW_WAYLAND_APP_ID
    glfwWindowHintString(GLFW_WAYLAND_APP_ID, kName);
#endif
    impl_->handle = glfwCreateWindow(size.width, size.height, "Shardscope", nullptr, nullptr);
    if (impl_->handle == nullptr) fail_without_opengl();
    set_icon(impl_->handle);
    impl_->make_current();
    glfwSwapInterval(g_windows == 1 ? 1 : 0);  // one window keeps the pace
    glfwSetWindowUserPointer(impl_->handle, impl_.get());
    glfwSetDropCallback(impl_->handle, [](GLFWwindow* window, int count, const char** paths) {
        auto* impl = static_cast<Impl*>(glfwGetWindowUserPointer(window));
        impl->frames_owed = kFramesAfterInput;
        for (int i = 0; impl->drop && i < count; ++i) impl->drop(paths[i]);
    });
    impl_->listen();
    impl_->platform = ImGui_ImplGlfw_InitForOpenGL(impl_->handle, false);
    impl_->renderer = ImGui_ImplOpenGL3_Init("#version 330 core");
    if (!impl_->platform || !impl_->renderer) fail();
}

Window::~Window() = default;

void Window::set_title(const std::string& title) {
    glfwSetWindowTitle(impl_->handle, title.c_str());
}

WindowSize Window::size() const {
    WindowSize size;
    glfwGetWindowSize(impl_->handle, &size.width, &size.height);
    size.maximized = glfwGetWindowAttrib(impl_->handle, GLFW_MAXIMIZED) == GLFW_TRUE;
    size.exact = true;
    return size;
}

float Window::scale() const {
    float x = 1, y = 1;
    glfwGetWindowContentScale(impl_->handle, &x, &y);
    return x > 0 ? x : 1;
}

bool Window::focused() const {
    return glfwGetWindowAttrib(impl_->handle, GLFW_FOCUSED) == GLFW_TRUE;
}

void Window::raise() {
    glfwFocusWindow(impl_->handle);
}

void Window::on_drop(std::function<void(const std::string&)> drop) {
    impl_->drop = std::move(drop);
}

bool Window::wants_close() const {
    return glfwWindowShouldClose(impl_->handle) == GLFW_TRUE;
}

void Window::close() {
    glfwSetWindowShouldClose(impl_->handle, GLFW_TRUE);
}

bool Window::wait(double seconds) {
    if (impl_->frames_owed > 0) {
        --impl_->frames_owed;
        glfwPollEvents();
        return true;
    }
    glfwWaitEventsTimeout(seconds);
    return impl_->frames_owed > 0;
}

bool Window::takes_input() {
    if (impl_->frames_owed == 0) return false;
    --impl_->frames_owed;
    return true;
}

void Window::begin_frame() {
    impl_->make_current();
    ImGui_ImplOpenGL3_NewFrame();
    ImGui_ImplGlfw_NewFrame();
    impl_->show_presses();
}

void Window::end_frame() {
    impl_->paint();
    glfwSwapBuffers(impl_->handle);
}

// Does not read the display itself, as another window may cover this one.
std::vector<std::uint8_t> Window::pixels() {
    impl_->paint();
    const auto rows = static_cast<std::size_t>(height()), row = static_cast<std::size_t>(width()) * 4;
    std::vector<std::uint8_t> below(row * rows), above(row * rows);
    glReadBuffer(GL_BACK);
    glPixelStorei(GL_PACK_ALIGNMENT, 1);
    glReadPixels(0, 0, width(), height(), GL_RGBA, GL_UNSIGNED_BYTE, below.data());
    for (std::size_t y = 0; y < rows; ++y) std::memcpy(&above[y * row], &below[(rows - 1 - y) * row], row);
    return above;
}

int Window::width() const {
    return impl_->pixels().first;
}

int Window::height() const {
    return impl_->pixels().second;
}

void Window::resize(int width, int height) {
    glfwSetWindowSize(impl_->handle, width, height);
    impl_->frames_owed = kFramesAfterInput;
}

void Window::reload_fonts() {
    impl_->make_current();
    ImGui_ImplOpenGL3_DestroyFontsTexture();
    ImGui_ImplOpenGL3_CreateFontsTexture();
    impl_->frames_owed = kFramesAfterInput;
}

}  // namespace shardscope::viewer::backend
