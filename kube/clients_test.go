// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestAnUnreadableKubeconfigIsNamed: the errors of a start name the file that is wrong.
func TestAnUnreadableKubeconfigIsNamed(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "bad")
	if err := os.WriteFile(bad, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{bad, filepath.Join(t.TempDir(), "missing")} {
		if _, err := RestConfig(ClientOptions{Kubeconfig: path}); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("kubeconfig %s: %v", path, err)
		}
	}
}
