#include "apps/web_server.h"

#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "apps/child_process.h"
#include "engine/error.h"

namespace backdrive::app {
namespace {

constexpr int kMostHeader = 16 << 10;
constexpr int kPatience = 20;  ///< s without a byte after which a connection ends
const int kEndSignals[] = {SIGINT, SIGTERM, SIGHUP};

/// 128 bits, so that nobody guesses them.
std::string random_token() {
  unsigned char bytes[16];
  if (::getrandom(bytes, sizeof bytes, 0) != static_cast<ssize_t>(sizeof bytes)) {
    usage_error(std::string("cannot make a random token: ") + std::strerror(errno));
  }
  std::string text;
  for (const unsigned char byte : bytes) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

/// In a time that does not tell how much of it is right.
bool same_token(std::string_view a, std::string_view b) {
  unsigned char difference = a.size() != b.size();
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) difference |= static_cast<unsigned char>(a[i] ^ b[i]);
  return difference == 0;
}

/// All values of a header: two of one name are one too many.
std::vector<std::string> header_values(const evkeyvalq* headers, const char* name) {
  std::vector<std::string> values;
  for (const evkeyval* h = headers->tqh_first; h; h = h->next.tqe_next) {
    if (::strcasecmp(h->key, name) == 0) values.emplace_back(h->value);
  }
  return values;
}

void send_reply(evhttp_request* request, const WebReply& reply) {
  evkeyvalq* const headers = evhttp_request_get_output_headers(request);
  evhttp_add_header(headers, "Content-Type", (reply.type + "; charset=utf-8").c_str());
  // A page can run its own scripts and ask its own server, and nothing else.
  evhttp_add_header(headers, "Content-Security-Policy",
                    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data: blob:; "
                    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'");
  evhttp_add_header(headers, "X-Content-Type-Options", "nosniff");
  evhttp_add_header(headers, "Referrer-Policy", "no-referrer");
  evhttp_add_header(headers, "Cross-Origin-Resource-Policy", "same-origin");
  evhttp_add_header(headers, "Cross-Origin-Opener-Policy", "same-origin");
  evhttp_add_header(headers, "Cache-Control", "no-store");
  evbuffer* const body = evbuffer_new();
  if (!body) throw std::bad_alloc();
  evbuffer_add(body, reply.body.data(), reply.body.size());
  evhttp_send_reply(request, reply.status, nullptr, body);
  evbuffer_free(body);
}

WebReply refusal(int status, const std::string& why) {
  return {status, why + "\n", "text/plain"};
}

}  // namespace

struct WebServer::Impl {
  struct FreeBase {
    void operator()(event_base* base) const { event_base_free(base); }
  };
  struct FreeHttp {
    void operator()(evhttp* http) const { evhttp_free(http); }
  };
  struct FreeEvent {
    void operator()(event* one) const { event_free(one); }
  };

  struct Route {
    std::string type;  ///< of a text
    std::string_view text;
    std::function<void(const std::string&, const WebAnswer&)> get;
    std::function<void(std::string_view, const WebAnswer&)> post;
  };

  std::unique_ptr<event_base, FreeBase> base{event_base_new()};
  std::unique_ptr<evhttp, FreeHttp> http;
  std::vector<std::unique_ptr<event, FreeEvent>> events;
  int wake = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  int port = 0;
  std::string token = random_token(), address;
  std::map<std::string, Route> routes;
  std::mutex mutex;
  std::vector<std::function<void()>> tasks;

  ~Impl() {
    events.clear();
    http.reset();
    if (wake >= 0) ::close(wake);
  }

  void add_event(int what, short kind, event_callback_fn call) {
    std::unique_ptr<event, FreeEvent> one(event_new(base.get(), what, kind, call, this));
    if (!one || event_add(one.get(), nullptr) != 0) usage_error("cannot watch for what happens: libevent");
    events.push_back(std::move(one));
  }

  static void stop_now(evutil_socket_t, short, void* self) {
    event_base_loopbreak(static_cast<Impl*>(self)->base.get());
  }

  static void run_tasks(evutil_socket_t descriptor, short, void* self) {
    std::uint64_t count = 0;
    if (::read(descriptor, &count, sizeof count) < 0) return;  // somebody was faster
    std::vector<std::function<void()>> now;
    {
      const std::lock_guard lock(static_cast<Impl*>(self)->mutex);
      now.swap(static_cast<Impl*>(self)->tasks);
    }
    for (const auto& task : now) task();
  }

  bool is_own(const std::string& host) const {
    const std::string at = ":" + std::to_string(port);
    return host == "127.0.0.1" + at || host == "localhost" + at;
  }

  /// Why a request is not one of this server's own page; 200: it is.
  WebReply check(evhttp_request* request, const std::string& path) const {
    const evkeyvalq* const headers = evhttp_request_get_input_headers(request);
    const std::vector<std::string> hosts = header_values(headers, "Host");
    if (hosts.size() != 1 || !is_own(hosts[0])) return refusal(403, "another host");
    for (const std::string& origin : header_values(headers, "Origin")) {
      if (!origin.starts_with("http://") || !is_own(origin.substr(7))) return refusal(403, "another origin");
    }
    const std::size_t end = path.find('/', 1);
    const bool own = end != std::string::npos && same_token(std::string_view(path).substr(1, end - 1), token);
    return own ? WebReply{} : refusal(403, "another address: simctl prints the right one when it starts");
  }

  void handle(evhttp_request* request) {
    const evhttp_uri* const uri = evhttp_request_get_evhttp_uri(request);
    const char* const raw_path = uri ? evhttp_uri_get_path(uri) : nullptr;
    const std::string path = raw_path ? raw_path : "";
    if (const WebReply why = check(request, path); why.status != 200) return send_reply(request, why);
    const auto found = routes.find(path.substr(path.find('/', 1) + 1));
    if (found == routes.end()) return send_reply(request, refusal(404, "nothing there"));
    const Route& route = found->second;
    const evhttp_cmd_type method = evhttp_request_get_command(request);
    const WebAnswer answer = [request](const WebReply& reply) { send_reply(request, reply); };
    if (method == EVHTTP_REQ_POST && route.post) return handle_post(request, route, answer);
    if (method != EVHTTP_REQ_GET || route.post) return answer(refusal(405, "not in this way"));
    if (!route.get) return answer({200, std::string(route.text), route.type});
    const char* const query = evhttp_uri_get_query(uri);
    route.get(query ? query : "", answer);
  }

  static void handle_post(evhttp_request* request, const Route& route, const WebAnswer& answer) {
    const std::vector<std::string> types = header_values(evhttp_request_get_input_headers(request), "Content-Type");
    if (types.size() != 1 || !types[0].starts_with("application/json")) {
      return answer(refusal(415, "expected application/json"));
    }
    evbuffer* const buffer = evhttp_request_get_input_buffer(request);
    std::string body(evbuffer_get_length(buffer), '\0');
    if (!body.empty()) evbuffer_copyout(buffer, body.data(), body.size());
    route.post(body, answer);
  }

  static void on_request(evhttp_request* request, void* self) {
    try {
      static_cast<Impl*>(self)->handle(request);
    } catch (const std::exception& error) {  // libevent is C: nothing may be thrown through it
      send_reply(request, refusal(500, error.what()));
    }
  }
};

WebServer::WebServer(int port) : impl_(std::make_unique<Impl>()) {
  // What it has to say of peers is of no interest to the user.
  event_set_log_callback([](int, const char*) {});
  if (!impl_->base || impl_->wake < 0) usage_error(std::string("cannot make a server: ") + std::strerror(errno));
  impl_->http.reset(evhttp_new(impl_->base.get()));
  evhttp_set_allowed_methods(impl_->http.get(), EVHTTP_REQ_GET | EVHTTP_REQ_POST);
  evhttp_set_max_headers_size(impl_->http.get(), kMostHeader);
  evhttp_set_max_body_size(impl_->http.get(), kMostBody);
  evhttp_set_timeout(impl_->http.get(), kPatience);
  evhttp_set_gencb(impl_->http.get(), &Impl::on_request, impl_.get());
  evhttp_bound_socket* const bound =
      evhttp_bind_socket_with_handle(impl_->http.get(), "127.0.0.1", static_cast<std::uint16_t>(port));
  if (!bound) usage_error("cannot listen on 127.0.0.1:" + std::to_string(port) + ": " + std::strerror(errno));
  sockaddr_in name{};
  socklen_t size = sizeof name;
  if (::getsockname(evhttp_bound_socket_get_fd(bound), reinterpret_cast<sockaddr*>(&name), &size) != 0) {
    usage_error(std::string("cannot listen: ") + std::strerror(errno));
  }
  impl_->port = ntohs(name.sin_port);
  impl_->address = "http://127.0.0.1:" + std::to_string(impl_->port) + "/" + impl_->token + "/";
  impl_->add_event(impl_->wake, EV_READ | EV_PERSIST, &Impl::run_tasks);
}

WebServer::~WebServer() = default;

const std::string& WebServer::address() const {
  return impl_->address;
}

void WebServer::put(const std::string& name, std::string_view text, const std::string& type) {
  impl_->routes[name] = {type, text, {}, {}};
}
void WebServer::on_get(const std::string& name, std::function<void(const std::string&, const WebAnswer&)> handler) {
  impl_->routes[name] = {"", "", std::move(handler), {}};
}
void WebServer::on_post(const std::string& name, std::function<void(std::string_view, const WebAnswer&)> handler) {
  impl_->routes[name] = {"", "", {}, std::move(handler)};
}

void WebServer::run(bool signals) {
  if (signals) {
    for (const int number : kEndSignals) impl_->add_event(number, EV_SIGNAL | EV_PERSIST, &Impl::stop_now);
  }
  event_base_dispatch(impl_->base.get());
}

void WebServer::stop() {
  post([base = impl_->base.get()] { event_base_loopbreak(base); });
}

void WebServer::post(std::function<void()> task) {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->tasks.push_back(std::move(task));
  }
  const std::uint64_t one = 1;
  // Full, it wakes all the same.
  if (::write(impl_->wake, &one, sizeof one) < 0) return;
}

bool open_in_browser(const std::string& address) {
  const std::string program = program_path("xdg-open");
  if (program.empty()) return false;
  const pid_t child = ::fork();
  if (child < 0) return false;
  if (child == 0) {
    // A grandchild, so that nobody has to wait for it; what it says is not of this program.
    const pid_t grandchild = ::fork();
    if (grandchild != 0) ::_exit(grandchild < 0);
    const int nowhere = ::open("/dev/null", O_RDWR);
    for (int descriptor = 0; descriptor < 3; ++descriptor) ::dup2(nowhere, descriptor);
    ::setsid();
    ::execl(program.c_str(), "xdg-open", address.c_str(), static_cast<char*>(nullptr));
    ::_exit(127);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  return status == 0;
}

}  // namespace backdrive::app
