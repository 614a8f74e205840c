// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
)

// klogText is what klog's own logger writes in a test.
type klogText struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (l *klogText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// lines are those with a text in them.
func (l *klogText) lines(with string) (found []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.text.String()) {
		if strings.Contains(line, with) {
			found = append(found, line)
		}
	}
	return found
}

func logOf(t *testing.T) *klogText {
	t.Helper()
	l := &klogText{}
	klog.SetLogger(textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(l))))
	t.Cleanup(klog.ClearLogger)
	return l
}

// TestARefusedKubeconfigIsLoggedOnce: however many requests an API server refuses, the log names the file and the cause
// once, and says when it is over. Errors of another kind change nothing.
func TestARefusedKubeconfigIsLoggedOnce(t *testing.T) {
	said := logOf(t)
	var code atomic.Int64
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(int(code.Load()))
		fmt.Fprint(w, "{}")
	}))
	file := clientcmdapi.NewConfig()
	file.Clusters["c"] = &clientcmdapi.Cluster{Server: server.URL, InsecureSkipTLSVerify: true}
	file.AuthInfos["c"] = &clientcmdapi.AuthInfo{Token: "old"}
	file.Contexts["c"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "c"}
	file.CurrentContext = "c"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*file, path); err != nil {
		t.Fatal(err)
	}
	cfg, err := RestConfig(ClientOptions{Kubeconfig: path})
	if err != nil {
		t.Fatal(err)
	}
	clients, err := NewClients(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ask := func(answer, times int) {
		code.Store(int64(answer))
		for range times {
			clients.Binds.CoreV1().Pods("default").Get(t.Context(), "p", metav1.GetOptions{})
			clients.Watches.CoreV1().Nodes().Get(t.Context(), "n", metav1.GetOptions{})
		}
	}
	ask(http.StatusForbidden, 1) // an account that may not read is accepted
	ask(http.StatusUnauthorized, 3)
	refused := said.lines("refuses the kubeconfig")
	if len(refused) != 1 || !strings.Contains(refused[0], path) || !strings.Contains(refused[0], server.URL) ||
		!strings.Contains(refused[0], "its token is not accepted") {
		t.Errorf("logged: %q", refused)
	}
	if early := said.lines("accepts the kubeconfig again"); len(early) != 0 {
		t.Errorf("logged: %q", early)
	}
	ask(http.StatusOK, 2)
	server.Close()
	ask(0, 1)
	if again := said.lines("accepts the kubeconfig again"); len(again) != 1 || !strings.Contains(again[0], path) {
		t.Errorf("logged: %q", again)
	}
	if n := len(said.lines("refuses the kubeconfig")); n != 1 {
		t.Errorf("%d lines for a server that is down", n-1)
	}
}
