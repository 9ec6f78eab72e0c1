package controlplane

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// ports are the TCP ports of one control plane by process name. They are kept in its state directory, so that a process
// that comes back is found where its clients look for it.
type ports struct {
	file   string
	mutex  sync.Mutex
	byName map[string]int
}

// loadPorts reads the ports in file, none if it does not exist.
func loadPorts(file string) (*ports, error) {
	p := &ports{file: file, byName: map[string]int{}}
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return p, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, &p.byName); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return p, nil
}

// address is 127.0.0.1 and the port of a process, a free one if it has none yet.
func (p *ports) address(name string) (string, error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if _, ok := p.byName[name]; !ok {
		port, err := freePort()
		if err != nil {
			return "", err
		}
		p.byName[name] = port
		data, err := json.Marshal(p.byName)
		if err != nil {
			return "", err
		}
		if err := replaceFile(p.file, data, 0o644); err != nil {
			return "", err
		}
	}
	return local(p.byName[name]), nil
}

func local(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

func portOf(address string) string { return address[strings.LastIndexByte(address, ':')+1:] }

// given are the ports that this process has given away: nobody listens on one until the process starts that it is for.
var given sync.Map

// freePort is a TCP port of 127.0.0.1 on which nobody listens, and that was given to nobody before. It lies below the
// range from which Linux takes the ports of outgoing connections: while the API server is away, a client that dials
// again and again could otherwise take the port itself, or connect to itself.
func freePort() (int, error) {
	const lowest, count = 20000, 12000
	var err error
	for range 100 {
		port := lowest + rand.IntN(count)
		if _, taken := given.LoadOrStore(port, true); taken {
			continue
		}
		var l net.Listener
		l, err = net.Listen("tcp", local(port))
		if err == nil {
			return port, l.Close()
		}
	}
	return 0, fmt.Errorf("no free port between %d and %d: %w", lowest, lowest+count, err)
}

// replaceFile writes a file so that a reader, or a restart after a crash, finds all of it or none of it.
func replaceFile(path string, data []byte, mode fs.FileMode) error {
	temporary := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".new")
	if err := os.WriteFile(temporary, data, mode); err != nil {
		return err
	}
	return os.Rename(temporary, path)
}
