package dashboard

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"slices"
)

// desktops are the variables one of which is set where a browser has a desktop to open on.
var desktops = []string{"DISPLAY", "WAYLAND_DISPLAY", "BROWSER"}

// open shows an address in the browser that the desktop has for it. Without a desktop it opens none: the text browser
// that would come up in its place cannot show the page, and would use up the address.
func open(address string) error {
	switch runtime.GOOS {
	case "darwin":
		return exec.Command("open", address).Run()
	case "windows":
		return exec.Command("rundll32", "url.dll,FileProtocolHandler", address).Run()
	}
	if !slices.ContainsFunc(desktops, func(name string) bool { return os.Getenv(name) != "" }) {
		return errors.New("there is no desktop")
	}
	return exec.Command("xdg-open", address).Run()
}
