# The programs alone: no shell, no package manager, no root. The directory of a platform has mayfly, and for the image "full" also mayfly-full.
# GoReleaser fills the context (dockers_v2 in .goreleaser.yaml), .ci/install does so in CI.
# The root file system may be read-only; only /data is written.
FROM scratch
ARG TARGETPLATFORM
COPY .release/image/certs /etc/ssl/certs
# An empty directory of the context, so that a new volume belongs to the user below.
COPY --chown=65532:65532 .release/image/data /data
COPY $TARGETPLATFORM/mayfly* /usr/bin/
USER 65532:65532
VOLUME /data
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s CMD ["/usr/bin/mayfly", "healthcheck"]
ENTRYPOINT ["/usr/bin/mayfly"]
# A container's port is reached only where it is published, so every command line of the server listens on all addresses, also DynamoDB Local's. Set MAYFLY_ACCESS_KEY and
# MAYFLY_SECRET_KEY to require signed requests.
ENV MAYFLY_SERVE_HOST=0.0.0.0 MAYFLY_SERVE_INSECURE_LISTEN=true
CMD ["serve", "--data", "/data", "--host", "0.0.0.0", "--insecure-listen"]
