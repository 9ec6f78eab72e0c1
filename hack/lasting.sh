# Sourced by scripts that run for hours: they have their log in $log, and go on when their terminal goes away.
trap '' HUP PIPE
exec </dev/null
mkdir -p "$(dirname "$log")"
: >"$log"

# say writes a line to the log, and to whoever is still there to read it.
say() {
  echo "$*" >>"$log"
  echo "$*" 2>/dev/null || true
}

# fail says a last line.
fail() {
  say "$*"
  exit 1
}

elapsed() { printf '%dh%02dm%02ds' $((SECONDS / 3600)) $((SECONDS / 60 % 60)) $((SECONDS % 60)); }
