// SPDX-License-Identifier: Apache-2.0

package kumiki

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/kumiki-scheduler/kumiki/conformance/diff"
	"github.com/kumiki-scheduler/kumiki/conformance/queue"
	"github.com/kumiki-scheduler/kumiki/conformance/scenario"
)

// replayFile plays a kept scenario, or a kept history of the queue when the name
// begins with queue-.
func replayFile(t *testing.T, up diff.Upstream, path string) string {
	t.Helper()
	if strings.HasPrefix(filepath.Base(path), "queue-") {
		h, err := queue.Load(path)
		if err != nil {
			t.Fatal(err)
		}
		return queue.Replay(h, NewQueue)
	}
	s, err := scenario.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	return diff.Replay(up, Subject{}, s)
}
