package dashboard

import (
	"bufio"
	"context"
	"encoding/hex"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
)

// Everybody on a machine can connect to its loopback, and on Linux can read there which address a browser was told to
// open. Linux also says whose each connection is. Other systems do not, and leave it at the token and the cookie.

// sockets are where Linux lists the connections of a machine, a line each.
var sockets = []string{"/proc/net/tcp", "/proc/net/tcp6"}

// peer is whose a connection is, as a key of a context.
type peer struct{}

// withPeer takes note of whose a connection is, where that can be told.
func withPeer(ctx context.Context, conn net.Conn) context.Context {
	client, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	server, err2 := netip.ParseAddrPort(conn.LocalAddr().String())
	if err != nil || err2 != nil {
		return ctx
	}
	for _, name := range sockets {
		file, err := os.Open(name)
		if err != nil {
			continue
		}
		uid, found := ownerOf(file, client, server)
		_ = file.Close() // it has been read
		if found {
			return context.WithValue(ctx, peer{}, uid)
		}
	}
	return ctx
}

// ofAnother reports whether a connection is known to be that of a user who has not started this program. The
// superuser, who may read everything anyway, forwards ports for others.
func ofAnother(ctx context.Context) bool {
	uid, known := ctx.Value(peer{}).(int)
	return known && uid != os.Getuid() && uid != 0
}

// established is the state, as Linux lists it, of a connection that nobody has begun to end.
const established = "01"

// nobody is the owner of connections whose owner is not told.
const nobody = -1

// ownerOf finds the user whose socket leads from one address to another in a list of sockets as Linux has it: number,
// both addresses, state, two pairs of numbers, one number, the user, and more. A socket that its program has closed is
// listed as the superuser's, whosever it was: it is nobody's.
func ownerOf(list io.Reader, from, to netip.AddrPort) (uid int, found bool) {
	for lines := bufio.NewScanner(list); lines.Scan(); {
		words := strings.Fields(lines.Text())
		if len(words) < 8 {
			continue
		}
		local, ok := addressOf(words[1])
		remote, ok2 := addressOf(words[2])
		if !ok || !ok2 || local != plain(from) || remote != plain(to) {
			continue
		}
		if words[3] != established {
			return nobody, true
		}
		uid, err := strconv.Atoi(words[7])
		return uid, err == nil
	}
	return 0, false
}

// addressOf reads an address as Linux lists it: words of four bytes in hexadecimal, the last byte first, and a port.
func addressOf(text string) (netip.AddrPort, bool) {
	host, port, _ := strings.Cut(text, ":")
	bytes, err := hex.DecodeString(host)
	number, err2 := strconv.ParseUint(port, 16, 16)
	for word := range slices.Chunk(bytes, 4) {
		slices.Reverse(word)
	}
	address, ok := netip.AddrFromSlice(bytes)
	return plain(netip.AddrPortFrom(address, uint16(number))), ok && err == nil && err2 == nil
}

// plain has an address of IPv4 that is written as one of IPv6 be written as what it is.
func plain(of netip.AddrPort) netip.AddrPort { return netip.AddrPortFrom(of.Addr().Unmap(), of.Port()) }
