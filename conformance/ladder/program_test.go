// SPDX-License-Identifier: Apache-2.0

package ladder

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
)

// programs are the two schedulers, built from this tree and from upstream's.
type programs struct{ kumiki, kubeScheduler, kubectl string }

// build links both into bin/, as `make build conformance-upstream` does; what is there and up to date stays.
func build(ctx context.Context) (programs, error) {
	bin, err := filepath.Abs("../../bin")
	if err != nil {
		return programs{}, err
	}
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return programs{}, err
	}
	p := programs{kumiki: filepath.Join(bin, "kumiki"), kubeScheduler: filepath.Join(bin, "kube-scheduler")}
	flags, err := os.ReadFile("../../localcluster/ldflags.txt")
	if err != nil {
		return p, err
	}
	for out, pkg := range map[string]string{p.kumiki: "./cmd/kumiki", p.kubeScheduler: "./conformance/cmd/kube-scheduler"} {
		cmd := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-ldflags="+strings.TrimSpace(string(flags)), "-o", out, pkg)
		cmd.Dir = filepath.Dir(bin)
		if said, err := cmd.CombinedOutput(); err != nil {
			return p, fmt.Errorf("building %s: %w\n%s", pkg, err, said)
		}
	}
	return p, nil
}

// process is a scheduler that runs.
type process struct {
	name string
	cmd  *exec.Cmd
	port int
	log  *tail
	gone chan struct{} // closed when it has ended; exit is valid then
	exit error
}

// start runs a scheduler on a port of its own. It dies with this process.
func start(name, binary string, args ...string) (*process, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	p := &process{name: name, port: port, log: &tail{}, gone: make(chan struct{})}
	p.cmd = exec.Command(binary, append(args, "--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", port))...)
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	go func() {
		p.exit = p.cmd.Wait()
		close(p.gone)
	}()
	return p, nil
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// end sends a signal and waits for the end.
func (p *process) end(how syscall.Signal) error {
	if err := p.cmd.Process.Signal(how); err != nil {
		return fmt.Errorf("ending %s: %w", p.name, err)
	}
	select {
	case <-p.gone:
		return nil
	case <-time.After(30 * time.Second):
		return fmt.Errorf("%s did not end within 30s of %s", p.name, how)
	}
}

// get asks the scheduler's own port. Its certificate was made at its start.
func (p *process) get(ctx context.Context, as *rest.Config, path string) (string, error) {
	ask := &rest.Config{BearerToken: as.BearerToken, TLSClientConfig: rest.TLSClientConfig{Insecure: true,
		CertData: as.CertData, KeyData: as.KeyData, CertFile: as.CertFile, KeyFile: as.KeyFile}}
	client, err := rest.HTTPClientFor(ask)
	if err != nil {
		return "", err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("https://127.0.0.1:%d%s", p.port, path), nil)
	if err != nil {
		return "", err
	}
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s answers %s with %s: %s", p.name, path, response.Status, body)
	}
	return string(body), err
}

// alive reports whether it answers its probe, which needs no rights.
func (p *process) alive(ctx context.Context) error {
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("https://127.0.0.1:%d/healthz", p.port), nil)
	if err != nil {
		return err
	}
	select {
	case <-p.gone:
		return fmt.Errorf("%s ended: %v", p.name, p.exit)
	default:
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s is not healthy: %s", p.name, response.Status)
	}
	return nil
}

// metric adds up the series of a metric that have all these labels, such as result="scheduled".
func (p *process) metric(ctx context.Context, as *rest.Config, name string, labels ...string) (float64, error) {
	text, err := p.get(ctx, as, "/metrics")
	if err != nil {
		return 0, err
	}
	sum := 0.0
	for line := range strings.Lines(text) {
		series, value, ok := strings.Cut(strings.TrimSpace(line), " ")
		own, rest, _ := strings.Cut(series, "{")
		if !ok || own != name {
			continue
		}
		for _, l := range labels {
			ok = ok && strings.Contains(rest, l)
		}
		if n, err := strconv.ParseFloat(value, 64); ok && err == nil {
			sum += n
		}
	}
	return sum, nil
}

// tail keeps the end of what a program says.
type tail struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.text.Len() > 1<<20 {
		t.text.Next(1 << 19)
	}
	return t.text.Write(p)
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.String()
}

// lines are the last n.
func (t *tail) lines(n int) string {
	all := strings.Split(strings.TrimSpace(t.String()), "\n")
	return strings.Join(all[max(0, len(all)-n):], "\n")
}
