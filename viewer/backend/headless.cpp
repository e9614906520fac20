// See headless.h.
#include "viewer/backend/headless.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>

#include <backends/imgui_impl_opengl3.h>
#include <imgui.h>

#define EGL_NO_X11
#define MESA_EGL_NO_X11_HEADERS
#include <EGL/egl.h>
#include <EGL/eglext.h>
#define GL_GLEXT_PROTOTYPES
#include <GL/gl.h>
#include <GL/glext.h>

namespace shardscope::viewer::backend {
namespace {

[[noreturn]] void fail(const char* what) {
    throw std::runtime_error(std::string("Pictures cannot be drawn on this machine: ") + what +
                             "; install Mesa's EGL and software renderer (libegl1, libgl1-mesa-dri).");
}

}  // namespace

namespace {

int g_canvases = 0;  // EGL's display is one for the process

}  // namespace

struct HeadlessCanvas::Impl {
    int width = 0, height = 0;
    EGLDisplay display = EGL_NO_DISPLAY;
    EGLContext context = EGL_NO_CONTEXT;
    GLuint framebuffer = 0, color = 0;
    bool imgui = false;
    bool painted = false;  // the latest frame has been painted

    Impl(int w, int h) : width(w), height(h) {}
    ~Impl() {
        if (context != EGL_NO_CONTEXT) eglMakeCurrent(display, EGL_NO_SURFACE, EGL_NO_SURFACE, context);
        if (imgui) ImGui_ImplOpenGL3_Shutdown();
        drop_framebuffer();
        if (context != EGL_NO_CONTEXT) {
            eglMakeCurrent(display, EGL_NO_SURFACE, EGL_NO_SURFACE, EGL_NO_CONTEXT);
            eglDestroyContext(display, context);
        }
#ifndef SHARDSCOPE_SANITIZED_ADDRESS
        // eglTerminate() unloads Mesa's driver, which leaks a few hundred bytes; while the driver is loaded,
        // LeakSanitizer still finds them reachable.
        if (display != EGL_NO_DISPLAY && --g_canvases == 0) eglTerminate(display);
#endif
    }

    void make_context() {
        const auto get_display =
            reinterpret_cast<PFNEGLGETPLATFORMDISPLAYEXTPROC>(eglGetProcAddress("eglGetPlatformDisplayEXT"));
        if (get_display == nullptr) fail("EGL has no platform displays");
        display = get_display(EGL_PLATFORM_SURFACELESS_MESA, EGL_DEFAULT_DISPLAY, nullptr);
        if (display == EGL_NO_DISPLAY || eglInitialize(display, nullptr, nullptr) == EGL_FALSE) {
            display = EGL_NO_DISPLAY;
            fail("EGL has no surfaceless platform");
        }
        ++g_canvases;
        if (eglBindAPI(EGL_OPENGL_API) == EGL_FALSE) fail("EGL has no OpenGL");
        const EGLint want[] = {EGL_SURFACE_TYPE, EGL_PBUFFER_BIT, EGL_RENDERABLE_TYPE, EGL_OPENGL_BIT,
                               EGL_NONE};
        EGLConfig config = nullptr;
        EGLint count = 0;
        if (eglChooseConfig(display, want, &config, 1, &count) == EGL_FALSE || count == 0) {
            fail("EGL offers no OpenGL configuration");
        }
        const EGLint version[] = {EGL_CONTEXT_MAJOR_VERSION,
                                  3,
                                  EGL_CONTEXT_MINOR_VERSION,
                                  3,
                                  EGL_CONTEXT_OPENGL_PROFILE_MASK,
                                  EGL_CONTEXT_OPENGL_CORE_PROFILE_BIT,
                                  EGL_NONE};
        context = eglCreateContext(display, config, EGL_NO_CONTEXT, version);
        if (context == EGL_NO_CONTEXT) fail("there is no OpenGL 3.3");
        make_current();
    }

    void make_current() const {
        if (eglMakeCurrent(display, EGL_NO_SURFACE, EGL_NO_SURFACE, context) == EGL_FALSE)
            fail("the OpenGL context cannot be used without a surface");
    }

    void drop_framebuffer() {
        if (framebuffer != 0) glDeleteFramebuffers(1, &framebuffer);
        if (color != 0) glDeleteRenderbuffers(1, &color);
        framebuffer = color = 0;
    }

    void make_framebuffer() {
        glGenRenderbuffers(1, &color);
        glBindRenderbuffer(GL_RENDERBUFFER, color);
        glRenderbufferStorage(GL_RENDERBUFFER, GL_RGBA8, width, height);
        glGenFramebuffers(1, &framebuffer);
        glBindFramebuffer(GL_FRAMEBUFFER, framebuffer);
        glFramebufferRenderbuffer(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_RENDERBUFFER, color);
        if (glCheckFramebufferStatus(GL_FRAMEBUFFER) != GL_FRAMEBUFFER_COMPLETE) {
            fail("the picture is too large for the renderer");
        }
    }
};

HeadlessCanvas::HeadlessCanvas(int width, int height) : impl_(std::make_unique<Impl>(width, height)) {
    impl_->make_context();
    impl_->make_framebuffer();
    impl_->imgui = ImGui_ImplOpenGL3_Init("#version 330 core");
    if (!impl_->imgui) fail("the drawing backend does not start");
}

HeadlessCanvas::~HeadlessCanvas() = default;

void HeadlessCanvas::begin_frame() {
    ImGuiIO& io = ImGui::GetIO();
    io.DisplaySize = {static_cast<float>(impl_->width), static_cast<float>(impl_->height)};
    io.DisplayFramebufferScale = {1, 1};
    io.DeltaTime = 1.0F / 60;  // a picture must not depend on the drawing speed
    io.MousePos = {-1e6F, -1e6F};
    impl_->painted = false;
    impl_->make_current();
    ImGui_ImplOpenGL3_NewFrame();
}

void HeadlessCanvas::end_frame() {
    impl_->make_current();
    glBindFramebuffer(GL_FRAMEBUFFER, impl_->framebuffer);
    glViewport(0, 0, impl_->width, impl_->height);
    glClearColor(0, 0, 0, 1);
    glClear(GL_COLOR_BUFFER_BIT);
    ImGui_ImplOpenGL3_RenderDrawData(ImGui::GetDrawData());
    impl_->painted = true;
}

std::vector<std::uint8_t> HeadlessCanvas::pixels() {
    if (!impl_->painted) end_frame();
    impl_->make_current();
    const std::size_t row = static_cast<std::size_t>(impl_->width) * 4;
    const auto height = static_cast<std::size_t>(impl_->height);
    std::vector<std::uint8_t> below(row * height), above(row * height);
    glBindFramebuffer(GL_FRAMEBUFFER, impl_->framebuffer);
    glPixelStorei(GL_PACK_ALIGNMENT, 1);
    glReadPixels(0, 0, impl_->width, impl_->height, GL_RGBA, GL_UNSIGNED_BYTE, below.data());
    // OpenGL's first row is the bottom one.
    for (std::size_t y = 0; y < height; ++y)
        std::memcpy(&above[y * row], &below[(height - 1 - y) * row], row);
    return above;
}

int HeadlessCanvas::width() const {
    return impl_->width;
}

int HeadlessCanvas::height() const {
    return impl_->height;
}

void HeadlessCanvas::resize(int width, int height) {
    impl_->make_current();
    impl_->drop_framebuffer();
    impl_->width = width;
    impl_->height = height;
    impl_->painted = false;
    impl_->make_framebuffer();
}

void HeadlessCanvas::reload_fonts() {
    impl_->make_current();
    ImGui_ImplOpenGL3_DestroyFontsTexture();
    ImGui_ImplOpenGL3_CreateFontsTexture();
}

}  // namespace shardscope::viewer::backend
