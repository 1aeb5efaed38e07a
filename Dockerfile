# kbctl as an image, for "kbctl run --table" in a management cluster (docs/installing.md#without-lambda).
# The digest is that of the index of all platforms, so that a moved tag cannot change the image. Change the tag and the digest together.
FROM --platform=$BUILDPLATFORM node:24.19.0-bookworm-slim@sha256:a9f5f7c91a432850b2a8a7797adf5eadb6c733ceed61167806cee7ea7fbc29df AS build
WORKDIR /src
COPY package.json package-lock.json .npmrc ./
# tools/node24 is a package of this repository.
COPY tools/node24 tools/node24
RUN npm ci
COPY . .
RUN node tools/build-cli.mjs --whole /kbctl.mjs

FROM node:24.19.0-bookworm-slim@sha256:a9f5f7c91a432850b2a8a7797adf5eadb6c733ceed61167806cee7ea7fbc29df
ENV NODE_ENV=production
COPY --from=build /kbctl.mjs /kbctl.mjs
USER 1000:1000
ENTRYPOINT ["node", "/kbctl.mjs"]
CMD ["--help"]
