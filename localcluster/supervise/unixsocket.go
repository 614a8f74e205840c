// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"fmt"
	"net"
	"os"
)

// withShortPath opens a directory and names the control socket in it. The address of a unix socket holds about 100
// bytes, less than many temporary directories are long, so it is named through the open directory where that is
// possible.
func withShortPath(dir string, use func(path string) error) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return use(shortName(dir, f.Fd(), controlSock))
}

func listenUnix(dir string) (net.Listener, error) {
	var l net.Listener
	err := withShortPath(dir, func(path string) (err error) {
		l, err = net.Listen("unix", path)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("open control socket: %w", err)
	}
	// The short name means nothing once the directory is closed; Close of the
	// data directory removes the file.
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	return l, nil
}

func dialUnix(dir string) (net.Conn, error) {
	var c net.Conn
	err := withShortPath(dir, func(path string) (err error) {
		c, err = net.Dial("unix", path)
		return err
	})
	return c, err
}
