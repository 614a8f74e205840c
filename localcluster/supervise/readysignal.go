// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"bytes"
	"encoding/json"
	"io"
	"sync"
)

// NodesReady is the line that role nodes writes to its standard output when
// all its nodes are schedulable.
type NodesReady struct {
	ReadyNodes int `json:"readyNodes"`
}

// readySignal reads a child's standard output and calls ready for each
// NodesReady line in it.
type readySignal struct {
	mu    sync.Mutex
	buf   []byte
	ready func(count int)
}

func newReadySignal(ready func(int)) *readySignal { return &readySignal{ready: ready} }

// writer is nil for a nil signal: an interface that holds a nil pointer would
// not be.
func (r *readySignal) writer() io.Writer {
	if r == nil {
		return nil
	}
	return r
}

// Write implements io.Writer.
func (r *readySignal) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.buf = append(r.buf, p...)
	for {
		i := bytes.IndexByte(r.buf, '\n')
		if i < 0 {
			return len(p), nil
		}
		var line NodesReady
		if json.Unmarshal(r.buf[:i], &line) == nil && bytes.Contains(r.buf[:i], []byte("readyNodes")) {
			r.ready(line.ReadyNodes)
		}
		r.buf = r.buf[i+1:]
	}
}
