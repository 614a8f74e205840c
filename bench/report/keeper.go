// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Keeper keeps a comparison in a file while it is made, so that what was measured survives an interrupt. The file
// holds the same JSON at any time as at the end; it is replaced as a whole. A nil keeper keeps nothing.
type Keeper struct {
	Path string
	// resume goes on with what the file has, but for the trials that failed, and those whose workload matches again.
	Resume bool
	Again  *regexp.Regexp // nil: none
}

// Begin puts the trials of before into a comparison that has none yet. A file that is there and not gone on with is
// moved aside, never overwritten.
func (k *Keeper) Begin(c *Comparison) error {
	if k == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(k.Path), 0o755); err != nil {
		return fmt.Errorf("keep what is measured: %w", err)
	}
	before, err := Read(k.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case !k.Resume:
		return os.Rename(k.Path, k.Path+".old")
	case err != nil:
		return fmt.Errorf("go on with what was measured: %w", err)
	case before.QPS != c.QPS || before.Burst != c.Burst || before.Rate != c.Rate || before.Machine != c.Machine || before.Limits != c.Limits:
		return fmt.Errorf("%s was measured on another machine or with other limits or another rate: it cannot be gone on with", k.Path)
	case before.hasUpstream() && c.KubeScheduler != "" && c.KubeScheduler != before.release():
		return fmt.Errorf("%s was measured with kube-scheduler %s, and this is %s: it cannot be continued",
			k.Path, before.release(), c.KubeScheduler)
	}
	if before.hasUpstream() {
		c.KubeScheduler = before.release()
	}
	c.Date, c.Workloads = before.Date, before.Workloads
	c.Rows = before.Rows
	c.Trials = slices.DeleteFunc(before.Trials, func(t Trial) bool {
		return !t.Good() || k.Again != nil && k.Again.MatchString(t.Workload)
	})
	return nil
}

// release returns the release of kube-scheduler. Files without it are older than the field, and of 1.36.3.
func (c *Comparison) release() string {
	return cmp.Or(c.KubeScheduler, "1.36.3")
}

// hasUpstream reports whether kube-scheduler was measured.
func (c *Comparison) hasUpstream() bool {
	return slices.ContainsFunc(c.Trials, func(t Trial) bool {
		return t.Scheduler == Upstream || strings.HasPrefix(t.Scheduler, Upstream+"@")
	})
}

func (k *Keeper) Put(c *Comparison) error {
	if k == nil {
		return nil
	}
	var text bytes.Buffer
	if err := c.Write(&text, "json"); err != nil {
		return err
	}
	return ReplaceFile(k.Path, text.Bytes())
}

// ReplaceFile writes a file as a whole or not at all.
func ReplaceFile(path string, text []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err := errors.Join(err, f.Chmod(0o644), f.Close()); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return os.Rename(f.Name(), path)
}
