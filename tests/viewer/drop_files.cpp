// Drops files on a window, as a file manager does (the XDND protocol, version 5), for tests on a virtual
// display.
//
//   drop_files WINDOW FILE...
//
// Exit status: 0 the window has taken the drop, 1 it has not within 20 seconds, 2 a wrong command line.
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include <X11/Xatom.h>
#include <X11/Xlib.h>

namespace {

class Source {
  public:
    Source(Display* display, Window target, std::string list)
        : display_(display),
          target_(target),
          list_(std::move(list)),
          own_(XCreateSimpleWindow(display, DefaultRootWindow(display), 0, 0, 1, 1, 0, 0, 0)) {}

    bool drop() {
        XSetSelectionOwner(display_, atom("XdndSelection"), own_, CurrentTime);
        send("XdndEnter", 5L << 24, static_cast<long>(uri_list_), None, None);
        constexpr long kAt = 300L << 16 | 300;  // x and y on the screen
        send("XdndPosition", 0, kAt, CurrentTime, static_cast<long>(atom("XdndActionCopy")));
        if (!hears("XdndStatus")) return false;
        send("XdndDrop", 0, CurrentTime, 0, 0);
        return hears("XdndFinished");
    }

  private:
    Atom atom(const char* name) const { return XInternAtom(display_, name, False); }

    void send(const char* type, long second, long third, long fourth, long fifth) const {
        XEvent event{};
        event.xclient.type = ClientMessage;
        event.xclient.window = target_;
        event.xclient.message_type = atom(type);
        event.xclient.format = 32;
        const std::array<long, 5> data = {static_cast<long>(own_), second, third, fourth, fifth};
        for (std::size_t i = 0; i < data.size(); ++i) event.xclient.data.l[i] = data[i];
        XSendEvent(display_, target_, False, NoEventMask, &event);
        XFlush(display_);
    }

    // Gives the list of files to whom asks for it, until the target answers with this message and its "yes"
    // bit.
    bool hears(const char* type) {
        for (int tenth = 0; tenth < 200; ++tenth) {
            while (XPending(display_) > 0) {
                XEvent event{};
                XNextEvent(display_, &event);
                if (event.type == SelectionRequest) give(event.xselectionrequest);
                if (event.type == ClientMessage && event.xclient.message_type == atom(type))
                    return (event.xclient.data.l[1] & 1) != 0;
            }
            std::this_thread::sleep_for(std::chrono::milliseconds(100));
        }
        return false;
    }

    void give(const XSelectionRequestEvent& request) {
        XChangeProperty(display_, request.requestor, request.property, uri_list_, 8, PropModeReplace,
                        reinterpret_cast<const unsigned char*>(list_.data()), static_cast<int>(list_.size()));
        XEvent event{};
        event.xselection.type = SelectionNotify;
        event.xselection.requestor = request.requestor;
        event.xselection.selection = request.selection;
        event.xselection.target = request.target;
        event.xselection.property = request.property;
        event.xselection.time = request.time;
        XSendEvent(display_, request.requestor, False, NoEventMask, &event);
        XFlush(display_);
    }

    Display* display_;
    Window target_;
    std::string list_;
    Window own_;
    Atom uri_list_ = XInternAtom(display_, "text/uri-list", False);
};

}  // namespace

int main(int argc, char** argv) {
    if (argc < 3) {
        std::fprintf(stderr, "drop_files: give a window's number and files.\n");
        return 2;
    }
    Display* display = XOpenDisplay(nullptr);
    if (display == nullptr) {
        std::fprintf(stderr, "drop_files: the display cannot be opened; set DISPLAY.\n");
        return 1;
    }
    std::string list;
    for (int i = 2; i < argc; ++i) list += std::string("file://") + argv[i] + "\r\n";
    const bool taken = Source(display, std::strtoul(argv[1], nullptr, 0), list).drop();
    XCloseDisplay(display);
    return taken ? 0 : 1;
}
