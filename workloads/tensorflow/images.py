# SPDX-License-Identifier: GPL-3.0-or-later
# SPDX-FileCopyrightText: the strain authors
"""The datasets of the TensorFlow job, as tf.data.Dataset."""

import jobs
import synthetic
import tensorflow as tf
from numpy.random import default_rng

MARGIN = 4  # pixels by which a crop may move


class Synthetic:
    """dt1 or dt2, in memory: a normalised image by its index; for training a crop, maybe mirrored,
    brighter or darker, by `random`."""

    edge = synthetic.EDGE
    class_count = synthetic.CLASSES

    def __init__(self, samples, seed, first, training):
        images, classes = synthetic.images(samples, seed, first)
        with tf.device("CPU"):
            self.images, self.classes = tf.constant(images), tf.constant(classes)
        self.samples, self.training = samples, training

    def item(self, index, random):
        """float32 [32, 32, 3] and its class."""
        image = self.images[index]
        if self.training:
            around = [[MARGIN, MARGIN], [MARGIN, MARGIN], [0, 0]]
            image = tf.pad(image, around, "REFLECT")
            image = tf.image.stateless_random_crop(image, (self.edge, self.edge, 3), random)
            image = tf.image.stateless_random_flip_left_right(image, random + 1)
            image *= tf.random.stateless_uniform((), random + 2, 0.9, 1.1)
            image = tf.clip_by_value(image, 0, 1)
        mean = tf.reduce_mean(image, (0, 1), keepdims=True)
        return (image - mean) / 0.1, self.classes[index]


class Folder:
    """Some files of a folder with a folder for each class, decoded and cropped."""

    def __init__(self, found, indices, image_size, training):
        paths, classes, self.class_count = found
        self.paths = tf.constant([paths[index] for index in indices])
        self.classes = tf.constant([classes[index] for index in indices], tf.int64)
        self.edge, self.samples, self.training = image_size, len(indices), training

    def item(self, index, random):
        """float32 [edge, edge, 3] and its class."""
        file = tf.io.read_file(self.paths[index])
        if self.training:
            nothing = tf.zeros((1, 0, 4))
            begin, size, _ = tf.image.stateless_sample_distorted_bounding_box(
                tf.image.extract_jpeg_shape(file), nothing, random, 0.1,
                (3 / 4, 4 / 3), (0.08, 1), use_image_if_no_bounding_boxes=True)  # fmt: skip
            window = tf.stack([begin[0], begin[1], size[0], size[1]])
            image = tf.image.decode_and_crop_jpeg(file, window, 3)
            image = tf.image.resize(image, (self.edge, self.edge))
            image = tf.image.stateless_random_flip_left_right(image, random + 1)
        else:
            image = tf.image.decode_jpeg(file, 3)
            image = tf.image.resize(image, (self.edge, self.edge))
        return (image / 255 - 0.5) / 0.1, self.classes[index]


def split(options):
    """Training and validation images (None: no validation) by --dataset and --samples."""
    held_out = options.validation_samples
    if options.dataset in synthetic.SAMPLES:
        samples = options.samples or synthetic.SAMPLES[options.dataset]
        jobs.check_samples(options, samples)
        unseen = Synthetic(held_out, options.seed, samples, False) if held_out else None
        return Synthetic(samples, options.seed, 0, True), unseen
    found = jobs.images_of(options.dataset)
    samples = min(options.samples or len(found[0]), len(found[0]) - held_out)
    jobs.check_samples(options, samples)
    drawn = default_rng(options.seed).permutation(len(found[0]))
    unseen = Folder(found, drawn[:held_out], options.image_size, False) if held_out else None
    return Folder(found, drawn[held_out:][:samples], options.image_size, True), unseen


def batches(images, options, rank):
    """One process's share of each batch. The batches do not depend on the number of processes, and have a
    different order in each epoch."""
    numbers = tf.data.Dataset.range(images.samples)
    if images.training:
        numbers = numbers.shuffle(images.samples, options.seed, reshuffle_each_iteration=True)
    random = tf.data.Dataset.random(options.seed, rerandomize_each_iteration=True)
    numbers = tf.data.Dataset.zip((numbers, random)).shard(options.processes, rank)

    def item(index, random):
        return images.item(index, tf.stack([random, tf.constant(options.seed, tf.int64)]))

    items = numbers.map(item, num_parallel_calls=options.workers or None)
    share = options.batch_size // options.processes
    ready = items.batch(share, drop_remainder=True).prefetch(2 if options.workers else 0)
    limits = tf.data.Options()
    limits.threading.private_threadpool_size = max(options.workers, 1)
    return ready.with_options(limits)
