#pragma once
// A page of this program for a browser of this machine, and nobody else: HTTP on 127.0.0.1 below a path that holds a
// random token. What it serves is in memory; no request names a file.
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace backdrive::app {

struct WebReply {
  int status = 200;
  std::string body;
  std::string type = "application/json";
};

/// Ends a request. Called once, at any time, in the thread that runs the server.
using WebAnswer = std::function<void(const WebReply&)>;

/// Requests are refused with 403 whose Host (or Origin, where there is one) is not this server's own, as behind a name
/// that somebody else's DNS gives to 127.0.0.1, or whose path does not begin with the token; with 404 and 405 what it
/// does not know; with 413 bodies of more than kMostBody bytes; with 415 a body that does not call itself JSON, which
/// pages of others cannot send unasked.
class WebServer {
 public:
  static constexpr int kMostBody = 64 << 10;

  /// Listens; port 0: one that is free. Throws Error (usage) where it cannot.
  explicit WebServer(int port);
  ~WebServer();
  WebServer(const WebServer&) = delete;
  WebServer& operator=(const WebServer&) = delete;

  /// "http://127.0.0.1:40123/TOKEN/"
  const std::string& address() const;

  // Before run():
  /// A text that lives as long as the program, below the address.
  void put(const std::string& name, std::string_view text, const std::string& type);
  void on_get(const std::string& name, std::function<void(const std::string& query, const WebAnswer&)> handler);
  void on_post(const std::string& name, std::function<void(std::string_view body, const WebAnswer&)> handler);

  /// Serves until stop(), or with `signals` until SIGINT, SIGTERM or SIGHUP.
  void run(bool signals);
  // From any thread:
  void stop();
  /// Calls `task` in the thread that runs the server, soon.
  void post(std::function<void()> task);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Shows an address in the user's browser, as the desktop says (xdg-open). False where that cannot be.
bool open_in_browser(const std::string& address);
inline constexpr const char* kNoBrowserOpens =
    "no browser opens by itself: expected xdg-open (Debian package xdg-utils)";

}  // namespace backdrive::app
