package dashboard

import (
	"os/exec"
	"runtime"
)

// open shows an address in the browser that the desktop has for it.
func open(address string) error {
	switch runtime.GOOS {
	case "darwin":
		return exec.Command("open", address).Run()
	case "windows":
		return exec.Command("rundll32", "url.dll,FileProtocolHandler", address).Run()
	}
	return exec.Command("xdg-open", address).Run()
}
