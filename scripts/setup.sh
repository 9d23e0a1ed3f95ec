# Sourced by ./simctl, ./test, scripts/setup and .ci/run: packages and builds. All that it says goes to stderr.
# Expects `root`, the folder of the repository, and `set -euo pipefail`.

say() { printf 'backdrive: %s\n' "$*" >&2; }

# wanted_packages build [test] [ci]
wanted_packages() {
  local groups=" $* " group package
  while read -r group package; do
    case "$group" in '' | '#'*) continue ;; esac
    if [[ $groups == *" $group "* ]]; then printf '%s\n' "$package"; fi
  done <"$root/scripts/packages.txt"
}

# missing_packages build [test] [ci]: those that dpkg does not have installed.
missing_packages() {
  local package installed
  installed=$(dpkg-query -W -f '${Status}\t${Package}\n' 2>/dev/null | sed -n 's/^install ok installed\t//p')
  for package in $(wanted_packages "$@"); do
    if ! grep -qxF "$package" <<<"$installed"; then printf '%s\n' "$package"; fi
  done
}

as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    return 127
  fi
}

apt_install() {
  local quiet=(-y -qq --no-install-recommends -o Dpkg::Use-Pty=0)
  # Fresh images have no lists, old ones lists of packages that are gone: both want an update first.
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install "${quiet[@]}" "$@" >/dev/null 2>&1 && return
  as_root apt-get update -qq >&2 || return
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install "${quiet[@]}" "$@" >&2
}

# ensure_packages INSTALL build [test] [ci]: with INSTALL=no says what is missing and ends the script with 2.
# A stamp in build/ keeps the check off the usual path; it is void when the list changes.
ensure_packages() {
  local install=$1
  shift
  local groups="$*" stamp missing
  stamp="$root/build/.packages-${groups// /-}"
  if [ "$stamp" -nt "$root/scripts/packages.txt" ] && command -v cmake >/dev/null && command -v ninja >/dev/null; then
    return
  fi
  if ! command -v dpkg-query >/dev/null; then
    say "no dpkg here; expecting the equivalents of: $(wanted_packages "$@" | tr '\n' ' ')"
    return
  fi
  missing=$(missing_packages "$@" | tr '\n' ' ')
  if [ -n "$missing" ]; then
    if [ "$install" = no ]; then
      say "missing Debian packages: ${missing% }"
      say "install them with: apt-get install ${missing% }"
      exit 2
    fi
    say "installing ${missing% }"
    # shellcheck disable=SC2086  # a list of words
    if ! apt_install $missing; then
      say "could not install them (root or sudo is needed); as root: apt-get install ${missing% }"
      exit 2
    fi
  fi
  mkdir -p "$root/build"
  touch "$stamp"
}

# configure PRESET [cmake options]
configure() {
  local preset=$1 log="$root/build/$1-configure.log" werror=OFF
  shift
  mkdir -p "$root/build"
  say "configuring build/$preset"
  # A newer compiler may warn of more: that is for CI and developers, not for who wants to run something.
  if [ -n "${CI-}" ]; then werror=ON; fi
  if ! (cd "$root" && cmake --preset "$preset" "-DBACKDRIVE_WERROR=$werror" "$@") >"$log" 2>&1; then
    cat "$log" >&2
    say "configuring failed"
    exit 2
  fi
}

# build_targets PRESET TARGET...: nothing is said when there is nothing to do.
build_targets() {
  local dir="$root/build/$1" jobs=${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}
  shift
  NINJA_STATUS='@%f %t ' ninja -C "$dir" -j "$jobs" "$@" 2>&1 | show_progress "$*" "${dir##*/}" >&2 ||
    { say "the build failed"; exit 2; }
}

# show_progress TARGETS FOLDER: shows ninja's output, but for its steps. They become a line of per cent done every 10 s,
# also while one file takes longer; on a terminal one line that is written over.
show_progress() {
  local line part='' finished=0 all=0 begin=$SECONDS said=-1 before='' after=$'\n'
  if [ -t 1 ]; then before=$'\r\e[K' after=''; fi
  while true; do
    if IFS= read -r -t 2 line; then
      line=$part$line part=''
      if [[ $line =~ ^@([0-9]+)\ ([0-9]+)\  ]]; then
        finished=${BASH_REMATCH[1]} all=${BASH_REMATCH[2]}
      elif [[ $line != 'ninja: Entering directory'* && $line != 'ninja: no work to do.' ]]; then
        printf '%s%s\n' "$before" "$line"
      fi
    elif [ $? -gt 128 ]; then
      part+=$line  # nothing more for 2 s
    else
      break
    fi
    if [ "$said" = -1 ]; then
      # Looking whether there is anything to do takes less.
      if [ "$finished" = 0 ] && [ $((SECONDS - begin)) -lt 4 ]; then continue; fi
      printf 'backdrive: building %s in build/%s (the first time takes minutes)\n' "$1" "$2"
      said=$begin
    fi
    if [ $((SECONDS - said)) -lt 10 ]; then continue; fi
    progress_line
    said=$SECONDS
  done
  if [ "$said" != -1 ] && [ "$said" != "$SECONDS" ]; then progress_line; fi
  if [ -n "$before" ] && [ "$said" != -1 ]; then printf '\n'; fi
}
# With the variables of show_progress.
progress_line() {
  printf '%sbackdrive: %d %% built, %d of %d steps, %d:%02d%s' "$before" $((all ? 100 * finished / all : 0)) \
    "$finished" "$all" $(((SECONDS - begin) / 60)) $(((SECONDS - begin) % 60)) "$after"
}

# find_nvcc: prints where one is, as cmake/cuda.cmake looks for it, or returns 1.
find_nvcc() {
  local candidate
  for candidate in "${CUDACXX-}" "$root/build/cuda-toolkit/bin/nvcc" nvcc /usr/local/cuda/bin/nvcc; do
    if [ -n "$candidate" ] && command -v "$candidate"; then return; fi
  done
  return 1
}

# with_lock FUNCTION...: two calls at once build one after the other.
with_lock() {
  mkdir -p "$root/build"
  exec 9>"$root/build/.lock"
  if ! flock -n 9; then
    say "waiting for another build to end"
    flock 9
  fi
  "$@"
  exec 9>&-
}

# What CI builds beside ./simctl and ./test; arguments are further options of cmake.

# By clang under AddressSanitizer and UndefinedBehaviorSanitizer: tests but those of scenes, simctl, which test_apps calls,
# and libFuzzer's targets.
build_asan() {
  configure asan "$@"
  build_targets asan test_engine test_models test_integrators test_gpu test_autodiff test_bad_input \
    test_apps fuzz_scene fuzz_mesh fuzz_robot
}

# What has threads.
build_tsan() {
  configure tsan "$@"
  build_targets tsan test_engine test_autodiff
}

# All kernels for GPUs, linked.
build_cuda() {
  configure cuda -DBACKDRIVE_TESTS=OFF -DBACKDRIVE_BENCHMARKS=OFF -DBACKDRIVE_STATIC=OFF "$@"
  build_targets cuda simctl
}

# What cpack packs.
build_package() {
  configure portable "$@"
  build_targets portable all
}

# Tests of steps, beside what was packed.
build_portable_tests() {
  configure portable -DBACKDRIVE_TESTS=ON "$@"
  build_targets portable test_integrators
}
