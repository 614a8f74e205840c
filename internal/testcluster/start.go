// SPDX-License-Identifier: Apache-2.0

package testcluster

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// TB is the part of testing.TB that Start uses. It is named here so that
// programs that call Launch do not link package testing.
type TB interface {
	Helper()
	Context() context.Context
	Cleanup(func())
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
	Logf(format string, args ...any)
	Failed() bool
}

// Start runs a cluster for a test and removes it when the test ends. It waits
// for any other test's cluster on this machine to end first, and it fails the
// test rather than skip it.
func Start(t TB, opts Options) *Cluster {
	t.Helper()
	if opts.Progress == nil {
		// A build takes minutes; a silent test looks hung.
		opts.Progress = os.Stderr
	}
	// Clean-ups run after the test's own context has ended.
	ctx := context.WithoutCancel(t.Context())
	unlock, err := lockOne(ctx, opts.Progress)
	if err != nil {
		t.Fatalf("start local cluster: %v", err)
	}
	c, err := Launch(ctx, opts)
	if err != nil {
		unlock()
		t.Fatalf("start local cluster: %v", err)
	}
	t.Cleanup(func() {
		defer unlock()
		if t.Failed() {
			t.Logf("the local cluster's last words:\n%s", c.Output())
		}
		if err := c.Close(); err != nil {
			t.Errorf("%v", err)
		}
	})
	return c
}

// lockOne takes the lock that serializes test clusters: two control planes on a small machine
// make each other miss their deadlines.
func lockOne(ctx context.Context, progress io.Writer) (func(), error) {
	path := filepath.Join(os.TempDir(), fmt.Sprintf("kumiki-testcluster-%d.lock", os.Getuid()))
	return lock(ctx, path, func() {
		fmt.Fprintln(progress, "waiting for another test's local cluster to end")
	})
}

// Reserve takes the lock for a test that starts its cluster itself, as a user does, and releases it when the test
// ends.
func Reserve(t TB) {
	t.Helper()
	unlock, err := lockOne(context.WithoutCancel(t.Context()), os.Stderr)
	if err != nil {
		t.Fatalf("wait for the turn to start a local cluster: %v", err)
	}
	t.Cleanup(unlock)
}
