// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package supervise

import (
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// attributes returns those of a role's process: Ctrl-C at the terminal is for the supervisor, which ends its children
// in order.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// FollowParent ends this process when its parent dies, which this system reports by another parent only.
func FollowParent() {
	parent := os.Getppid()
	go func() {
		for os.Getppid() == parent {
			time.Sleep(time.Second)
		}
		os.Exit(1)
	}()
}

// shortName returns the name of a file in a directory. This system has no names through open directories, so the
// directory's own must be short.
func shortName(dir string, _ uintptr, file string) string { return filepath.Join(dir, file) }
