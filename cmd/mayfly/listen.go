package main

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"syscall"
)

// listen opens the port. Port 0 takes a free one.
func listen(host string, port int) (net.Listener, error) {
	if port < 0 || port > 65535 {
		return nil, misused(fmt.Errorf("there is no port %d", port), "give one from 1 to 65535, or 0 for a free one")
	}
	address := net.JoinHostPort(host, strconv.Itoa(port))
	l, err := net.Listen("tcp", address)
	switch {
	case err == nil:
		return l, nil
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, advise(fmt.Errorf("port %d is in use on %s", port, host),
			"stop what listens there (DynamoDB Local uses 8000 too), or choose another with --port, or --port 0 for a free one")
	case errors.Is(err, syscall.EACCES):
		return nil, advise(fmt.Errorf("port %d may not be opened by this user", port), "choose one above 1023 with --port")
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return nil, advise(fmt.Errorf("%s is not an address of this machine", host), "give one of its addresses, or 0.0.0.0 for all, with --host")
	}
	return nil, fmt.Errorf("listen on %s: %w", address, err)
}

// checkExposure refuses to serve data to the network without credentials, unless that is asked for.
func checkExposure(host string, credentials, insecure bool) error {
	if credentials || insecure || isLoopback(host) {
		return nil
	}
	return advise(fmt.Errorf("%s can be reached from other machines, and no credentials are configured: anyone could read and change the data", host),
		"set --access-key and --secret-key, or listen on 127.0.0.1, or say --insecure-listen if the network is trusted")
}

func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
