// SPDX-License-Identifier: Apache-2.0

package testcluster

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
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
// while as many clusters of tests as ClustersEnv allows run on this machine, and
// it fails the test rather than skip it.
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

// ClustersEnv says how many test clusters may run at a time on this machine; empty means one. Two control planes that
// work make each other slow on a small machine, but most tests wait: `make test` runs several packages at a time.
const ClustersEnv = "KUMIKI_TEST_CLUSTERS"

// lockOne takes a lock that limits the number of test clusters.
func lockOne(ctx context.Context, progress io.Writer) (func(), error) {
	places, err := places(os.Getenv(ClustersEnv))
	if err != nil {
		return nil, err
	}
	return lock(ctx, func() {
		fmt.Fprintln(progress, "waiting for another test's local cluster to end")
	}, places...)
}

// places are the paths of the locks for as many clusters as a text says. The first one is the same for any number.
func places(text string) ([]string, error) {
	n := 1
	if text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil || n < 1 {
			return nil, fmt.Errorf("%s: want a positive number of clusters, not %.32q", ClustersEnv, text)
		}
	}
	out := make([]string, n)
	for i := range out {
		out[i] = filepath.Join(os.TempDir(), fmt.Sprintf("kumiki-testcluster-%d", os.Getuid()))
		if i > 0 {
			out[i] += "-" + strconv.Itoa(i+1)
		}
		out[i] += ".lock"
	}
	return out, nil
}

// Reserve takes such a lock for a test that starts its cluster itself, as a user does, and releases it when the test
// ends.
func Reserve(t TB) {
	t.Helper()
	unlock, err := lockOne(context.WithoutCancel(t.Context()), os.Stderr)
	if err != nil {
		t.Fatalf("wait for the turn to start a local cluster: %v", err)
	}
	t.Cleanup(unlock)
}
