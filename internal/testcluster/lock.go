// SPDX-License-Identifier: Apache-2.0

package testcluster

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"time"
)

// lockInterval is how often a lock that is held is tried again.
const lockInterval = 100 * time.Millisecond

// lock takes one of the file locks at paths, the first that is free, waiting until ctx ends; waiting, when not nil, is
// called once if all are held. The kernel releases a lock when this process dies: a killed test blocks no other test.
func lock(ctx context.Context, waiting func(), paths ...string) (unlock func(), err error) {
	for {
		for _, path := range paths {
			f, err := tryLock(path)
			if err != nil {
				return nil, err
			}
			if f != nil {
				return func() { f.Close() }, nil
			}
		}
		if waiting != nil {
			waiting()
			waiting = nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("lock %s: %w", paths[0], ctx.Err())
		case <-time.After(lockInterval):
		}
	}
}

// tryLock takes the file lock at path and returns the file that holds it; nil if another file does.
func tryLock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o666)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return f, nil
	}
	f.Close()
	if err == syscall.EWOULDBLOCK || err == syscall.EINTR {
		return nil, nil
	}
	return nil, fmt.Errorf("lock %s: %w", path, err)
}
