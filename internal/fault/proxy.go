// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Proxy stands on loopback in front of an API server and obeys Rules. It has the credentials of one kubeconfig and
// gives out another, with which a program reaches the API server through it.
type Proxy struct {
	Rules
	kubeconfig string
	token      string
	gate       gate
	server     *http.Server
	next       http.RoundTripper
	served     chan error
}

// connKey is where a request's context keeps its connection.
type connKey struct{}

// Start begins to serve on a free port of loopback, as the user of kubeconfig. It writes its own kubeconfig into dir.
func Start(dir, kubeconfig string) (*Proxy, error) {
	cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("fault proxy: reading kubeconfig %s: %w", kubeconfig, err)
	}
	return StartFor(dir, cfg)
}

// StartFor is Start for a configuration in memory.
func StartFor(dir string, cfg *rest.Config) (*Proxy, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.DisableCompression = true
	cfg.QPS = -1
	// A dialer of its own keeps its connections apart from those of other clients in this process.
	cfg.Dial = (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext
	next, err := rest.TransportFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("fault proxy: connecting to %s: %w", cfg.Host, err)
	}
	target, _, err := rest.DefaultServerUrlFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("fault proxy: address %s: %w", cfg.Host, err)
	}
	p := &Proxy{token: rand.Text(), next: next, served: make(chan error, 1)}
	cert, authority, err := ownCertificate()
	if err != nil {
		return nil, fmt.Errorf("fault proxy: making a certificate: %w", err)
	}
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("fault proxy: %w", err)
	}
	p.kubeconfig = filepath.Join(dir, fmt.Sprintf("fault-proxy-%d.kubeconfig", inner.Addr().(*net.TCPAddr).Port))
	if err := p.writeKubeconfig("https://"+inner.Addr().String(), authority); err != nil {
		return nil, errors.Join(err, inner.Close())
	}
	p.server = &http.Server{
		Handler: p.handler(target),
		// Cut connections and clients that go away are what this is for.
		ErrorLog:    log.New(io.Discard, "", 0),
		ConnContext: func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) },
		TLSConfig:   &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12},
		// A client that never ends its handshake must not stay for good.
		ReadHeaderTimeout: time.Minute,
	}
	go func() { p.served <- p.server.ServeTLS(gatedListener{inner, &p.gate}, "", "") }()
	return p, nil
}

// Kubeconfig is the file with which a program reaches the API server through the proxy.
func (p *Proxy) Kubeconfig() string { return p.kubeconfig }

// Part parts the clients from the API server: bytes go neither way and no connection breaks. Heal ends it.
func (p *Proxy) Part() { p.gate.close() }

// Heal ends Part.
func (p *Proxy) Heal() { p.gate.open() }

// Close ends the proxy and all that is under way.
func (p *Proxy) Close() error {
	p.Clear()
	p.Heal()
	err := p.server.Close()
	if served := <-p.served; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}

// handler passes requests on under the rules.
func (p *Proxy) handler(target *url.URL) http.Handler {
	reverse := &httputil.ReverseProxy{
		Transport:     NewTransport(&p.Rules, p.next),
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0),
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			// Who asks is decided here and not by the client.
			r.Out.Header.Del("Authorization")
		},
		ErrorHandler: func(_ http.ResponseWriter, r *http.Request, _ error) {
			// An API server that is not there answers nothing, so neither does this.
			if c, ok := r.Context().Value(connKey{}).(net.Conn); ok && r.Context().Err() == nil {
				_ = c.Close()
			}
			panic(http.ErrAbortHandler)
		},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), []byte("Bearer "+p.token)) != 1 {
			http.Error(w, "this proxy serves the holder of its kubeconfig", http.StatusUnauthorized)
			return
		}
		reverse.ServeHTTP(w, r)
	})
}

func (p *Proxy) writeKubeconfig(address string, authority []byte) error {
	const name = "fault-proxy"
	out := clientcmdapi.NewConfig()
	out.Clusters[name] = &clientcmdapi.Cluster{Server: address, CertificateAuthorityData: authority}
	out.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: p.token}
	out.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	out.CurrentContext = name
	if err := clientcmd.WriteToFile(*out, p.kubeconfig); err != nil {
		return fmt.Errorf("fault proxy: writing %s: %w", p.kubeconfig, err)
	}
	return nil
}

// ownCertificate makes a certificate for loopback that signs itself, and its PEM for clients.
func ownCertificate() (tls.Certificate, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: "fault-proxy"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(30 * 24 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true, IsCA: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key},
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}
